// Token files: numbers, little-endian, nothing else; `dtype` says of which type, without it uint16. Several files are
// one sequence of tokens. A window is one read (two across a file boundary), so a rank reads only its own. Beside a
// file may lie the tokenizer that it was written with (tokenizer_beside()); if that has more than 65,536 tokens, they
// are uint32.
//
// Nothing in such a file says what it is, so what it cannot be is refused: files of other programs by their first
// bytes, and numbers of another type by what they look like when they are read as these.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "core/digest.hpp"
#include "core/files.hpp"
#include "data/bytes.hpp"
#include "data/readers/common.hpp"
#include "data/readers/file.hpp"
#include "data/readers/readers.hpp"
#include "data/readers/token_windows.hpp"
#include "data/tokenizer/tokenizer_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

/// The type of numbers in a file.
struct TokenType {
  std::string name;
  std::int64_t bytes = 2;
};

TokenType type_of(const SourceOptions& source, std::int64_t vocabulary) {
  if (!source.attributes.has("dtype")) {
    const std::int64_t bytes = token_bytes(vocabulary);
    return {bytes == 2 ? "uint16" : "uint32", bytes};
  }
  const std::string& name = source.attributes.text("dtype");
  return {name, name == "uint16" ? 2 : name == "int64" ? 8 : 4};
}

/// Refuses what is known by its first bytes, which do not count as read.
void require_bare_numbers(const std::string& path) {
  const File file(path, make_byte_counter());
  std::string begin(std::min<std::uint64_t>(file.size(), 6), '\0');
  file.read(0, std::as_writable_bytes(std::span(begin)));
  struct Kind {
    std::string_view magic, name, advice;
  };
  static constexpr std::array<Kind, 6> kKinds{
      {{"\x93NUMPY", "a NumPy file", "write the numbers alone, `numpy.load(FILE).tofile(NEW)`, and set `dtype`"},
       {"PK\3\4", "a zip or .npz file", "write the numbers alone, and set `dtype`"},
       {"\x1f\x8b", "a gzip file", "unpack it"},
       {"PAR1", "a Parquet file", "write the numbers alone, and set `dtype`"},
       {"\x88\xD8\x34\x01", "a file of llm.c with a header", "remove it: `tail -c +1025 FILE > NEW`"},
       {"\xA1\xD9\x34\x01", "a file of llm.c with a header",
        "remove it, `tail -c +1025 FILE > NEW`, and set `dtype: uint32`"}}};
  for (const auto& [magic, name, advice] : kKinds) {
    if (!begin.starts_with(magic)) continue;
    throw Error(ExitCode::data,
                fmt::format("{}: expected numbers and nothing else, found {}; {}", file.path(), name, advice));
  }
}

class TokenFiles : public TokenSource {
 public:
  TokenFiles(const std::vector<std::string>& paths, TokenType type) : type_(std::move(type)) {
    for (const auto& path : paths) {
      files_.push_back(std::make_unique<File>(path, counter_));
      require_bare_numbers(path);
      const std::int64_t bytes = files_.back()->size();
      if (bytes % type_.bytes != 0) {
        const std::string multiple = type_.bytes == 2 ? "an even number" : fmt::format("a multiple of {}", type_.bytes);
        throw Error(ExitCode::data,
                    fmt::format("{}: {} bytes; tokens of {} bits take {}", path, bytes, type_.bytes * 8, multiple));
      }
      size_ += bytes / type_.bytes;
      ends_.push_back(size_);
    }
  }

  std::int64_t size() const override { return size_; }
  std::uint64_t bytes_read() const override { return *counter_; }
  std::int64_t bytes() const { return size_ * type_.bytes; }
  const TokenType& type() const { return type_; }

  void read(std::int64_t first, std::span<std::int32_t> out) const override {
    if (type_.bytes == 4) return read_raw(first, out);
    if (type_.bytes == 8) return read_as<std::int64_t>(first, out);
    return read_as<std::uint16_t>(first, out);
  }
  /// The numbers as the files have them.
  void read_numbers(std::int64_t first, std::span<std::int64_t> out) const {
    if (type_.bytes == 8) return read_raw(first, out);
    if (type_.bytes == 2) return read_as<std::uint16_t>(first, out);
    return type_.name == "int32" ? read_as<std::int32_t>(first, out) : read_as<std::uint32_t>(first, out);
  }

 private:
  template <class Number, class Token>
  void read_as(std::int64_t first, std::span<Token> out) const {
    std::vector<Number> raw(out.size());
    read_raw(first, std::span(raw));
    std::transform(raw.begin(), raw.end(), out.begin(), [](Number number) { return static_cast<Token>(number); });
  }
  template <class Token>
  void read_raw(std::int64_t first, std::span<Token> out) const {
    std::size_t file = std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin();
    while (!out.empty()) {
      LOCKSTEP_CHECK(file < files_.size(), "the position of a token");
      const auto count = static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(out), ends_[file] - first));
      const std::int64_t begin = file == 0 ? 0 : ends_[file - 1];
      files_[file]->read((first - begin) * type_.bytes, std::as_writable_bytes(out.first(count)));
      out = out.subspan(count);
      first += static_cast<std::int64_t>(count);
      ++file;
    }
  }

  TokenType type_;
  ByteCounter counter_ = make_byte_counter();
  std::vector<std::unique_ptr<File>> files_;
  std::vector<std::int64_t> ends_;  ///< by file: number of tokens up to its end
  std::int64_t size_ = 0;
};

bool is_small(const TokenFiles& files) {
  return static_cast<std::uint64_t>(files.bytes()) <= kFullDigestBytes;
}

/// The text of the tokenizer beside the files; "" if there is none.
std::string tokenizer_of(const std::vector<std::string>& paths) {
  const auto text_of = [](const std::string& path) { return read_whole_file(tokenizer_beside(path)).value_or(""); };
  std::string text = text_of(paths.front());
  for (const auto& path : paths) {
    if (text_of(path) == text) continue;
    throw Error(ExitCode::data,
                fmt::format("{}: its tokenizer is not that of {}; expected files of one tokenizer, which "
                            "lies beside each as <file>.tokenizer.json",
                            path, paths.front()));
  }
  return text;
}

/// Whether these numbers look like larger ones that were read in halves or quarters: every second, or three of four,
/// are the upper bits of a token, which are zeros or nearly so.
class Halves {
 public:
  void add(std::int64_t position, std::int64_t number) {
    std::int64_t& most = most_.at(position % 4);
    most = std::max(most, number);
    ++count_;
  }
  /// The type that the numbers seem to have, if they are read as numbers of `bytes`; "": these.
  std::string_view type(std::int64_t bytes) const {
    constexpr std::int64_t kFewest = 64, kUpper = 16, kLower = 256;
    const std::int64_t lower = std::max(most_[0], most_[2]), upper = std::max(most_[1], most_[3]);
    const bool halves = upper == 0 ? lower > 0 : upper < kUpper && lower >= kLower;
    if (bytes == 8 || count_ < kFewest || !halves) return "";
    return bytes == 4 || (most_[2] == 0 && most_[3] == 0) ? "int64" : "uint32";
  }

 private:
  std::array<std::int64_t, 4> most_{};
  std::int64_t count_ = 0;
};

/// Whether all are whole numbers of at least 0, and some are not 0.
template <class Real>
bool are_whole(std::span<const std::uint16_t> words) {
  bool any = false;
  for (std::size_t at = 0; at + sizeof(Real) / 2 <= words.size(); at += sizeof(Real) / 2) {
    Real number = 0;
    std::memcpy(&number, &words[at], sizeof(Real));
    if (!(number >= 0 && number < 1 << 24 && number == std::floor(number))) return false;
    any = any || number > 0;
  }
  return any;
}

/// What a file holds whose beginning is hardly of uint16, by patterns that tokens don't have by chance; "": nothing
/// else.
std::string_view other_than_uint16(std::span<const std::uint16_t> words) {
  constexpr std::size_t kFewest = 64;
  if (words.size() < kFewest) return "";
  if (are_whole<float>(words)) return "float32 numbers";
  if (are_whole<double>(words)) return "float64 numbers";
  std::uint16_t low = 0, high = 0, first = 0, second = 0;
  bool signed_pairs = true, any_negative = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    low = std::max<std::uint16_t>(low, words[i] & 0xFF);
    high = std::max<std::uint16_t>(high, words[i] >> 8);
    if (i % 2 == 0) {
      first = std::max(first, words[i]);
      continue;
    }
    second = std::max(second, words[i]);
    const bool negative = words[i] == 0xFFFF && words[i - 1] >= 0x8000;
    signed_pairs = signed_pairs && (negative || words[i] < 16);
    any_negative = any_negative || negative;
  }
  if (signed_pairs && any_negative) return "int32 numbers, some of them negative";
  if (first == 0 && second > 0) return "uint32 numbers with the highest byte first";
  if (low < 16 && high >= 128) return "uint16 numbers with the highest byte first";
  return low < 128 && high < 128 && high > 0 ? "numbers of 8 bits, or text" : "";
}

/// Refuses a file of uint16 that looks like another one; `words`: its beginning.
void require_uint16(std::span<const std::int64_t> words, const std::string& source) {
  constexpr std::size_t kLooked = 4096;
  const std::vector<std::uint16_t> looked(words.begin(), words.begin() + std::min(words.size(), kLooked));
  const auto found = other_than_uint16(looked);
  if (found.empty()) return;
  throw Error(
      ExitCode::data,
      fmt::format("{}: read as uint16, found what looks like {}; write the tokens as uint16, little-endian, or set "
                  "`dtype: uint16` if they are these",
                  source, found));
}

/// Reads all of a small set, or spots of a large one; returns the largest token seen (-1: none) and the digest. Refuses
/// what is no token; `given`: the job says of which type the numbers are.
std::string scan(const TokenFiles& files, const std::string& source, bool given) {
  Sha256 digest;
  digest.add(fmt::format("tokens 1 {}\n", files.size()));
  constexpr std::int64_t kPiece = 1 << 19, kMostTokens = 1 << 24;
  const bool whole = is_small(files);
  const std::int64_t step = whole ? kPiece : files.size() / kSpotChecks;
  const std::int64_t length = whole ? kPiece : 2048;
  const TokenType& type = files.type();
  std::vector<std::int64_t> piece;
  std::vector<std::int32_t> tokens;
  std::vector<std::uint16_t> narrow;
  std::int64_t most = -1;
  Halves halves;
  for (std::int64_t at = 0; at < files.size(); at += step) {
    piece.resize(std::min(length, files.size() - at));
    files.read_numbers(at, piece);
    if (at == 0 && type.bytes == 2 && !given) require_uint16(piece, source);
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const std::int64_t token = piece[i], position = at + static_cast<std::int64_t>(i);
      if (token < 0 || token >= kMostTokens) {
        throw Error(ExitCode::data, fmt::format("{}: read as {}, number {} is {}; expected tokens, from 0 to {}; set "
                                                "`dtype` to the type that they were written in",
                                                source, type.name, position, token, kMostTokens - 1));
      }
      most = std::max(most, token);
      halves.add(position, token);
    }
    if (type.bytes == 2) {
      narrow.assign(piece.begin(), piece.end());
      digest.add(std::as_bytes(std::span(narrow)));
    } else {
      tokens.assign(piece.begin(), piece.end());
      digest.add(std::as_bytes(std::span(tokens)));
    }
  }
  const std::string_view seems = given && type.bytes == 2 ? "" : halves.type(type.bytes);
  if (!seems.empty()) {
    const bool quarters = type.bytes == 2 && seems == "int64";
    throw Error(
        ExitCode::data,
        fmt::format("{}: read as {}, {} nearly 0, as if they were the upper halves of larger ones; set `dtype: {}`{}",
                    source, type.name, quarters ? "three of four numbers are" : "every second number is", seems,
                    type.bytes == 2 ? ", or `dtype: uint16` if they are these" : ""));
  }
  std::string found;
  append(found, most);
  return found + digest.hex();
}

}  // namespace

DataSetInfo foresee_tokens(const SourceOptions& source) {
  DataSetInfo info;
  TokenWindows::describe(TokenWindows::options_of(source), info);
  return info;
}

std::unique_ptr<DataSet> open_tokens(const SourceOptions& source, const IndexOptions& options) {
  if (options.notes != nullptr) {
    for (const auto& path : source.paths) options.notes->made_from_file(path);
  }
  DataSetInfo info;
  info.source = describe(source.paths);
  info.tokenizer = tokenizer_of(source.paths);
  TokenWindows::Options windows = TokenWindows::options_of(source, options.like);
  if (!info.tokenizer.empty()) {
    if (options.notes != nullptr) options.notes->made_from_file(tokenizer_beside(source.paths.front()));
    const auto tokenizer = parse_tokenizer(info.tokenizer, tokenizer_beside(source.paths.front()));
    info.vocabulary = tokenizer->vocabulary();
    windows = TokenWindows::options_of(source, *tokenizer, options.like);
    require_tokenizer_like(options.like, info.tokenizer, info.source);
  }
  const TokenType type = type_of(source, info.vocabulary);
  info.format = fmt::format("tokens of {} bits", type.bytes * 8);
  auto files = std::make_shared<TokenFiles>(source.paths, type);
  const std::string found = noted(options.notes, "largest token of " + type.name,
                                  [&] { return scan(*files, info.source, source.attributes.has("dtype")); });
  ByteReader reader(found, "noted tokens end too early");
  const auto most = reader.value<std::int64_t>();
  info.digest = reader.text(reader.rest().size());
  info.content_in_digest = is_small(*files);
  if (options.like != nullptr) {
    info.vocabulary = options.like->vocabulary - (windows.masked.adds_token() ? 1 : 0);  // without the mask
  } else if (info.tokenizer.empty()) {
    info.vocabulary = info.content_in_digest ? std::max(most, windows.masked.token) + 1 : 0;
  }
  if (info.vocabulary > 0 && most >= info.vocabulary) {
    throw Error(ExitCode::data, fmt::format("{}: token {}; the {}'s are below {}", info.source, most,
                                            options.like != nullptr ? "training set" : "tokenizer", info.vocabulary));
  }
  info.warnings = unused_token_settings(source, options.like);
  const std::int64_t size = files->size();
  return std::make_unique<TokenWindows>(std::move(files), std::move(info), windows, 0, size);
}

}  // namespace lockstep::data
