// Token files: uint16, little-endian, nothing else. Several files are one sequence of tokens. A window is one read (two
// across a file boundary), so a rank reads only its own. Beside a file may lie the tokenizer that it was written with
// (tokenizer_beside()); if that has more than 65,536 tokens, they are uint32.
#include <fmt/format.h>

#include <algorithm>

#include "core/digest.hpp"
#include "core/whole_file.hpp"
#include "data/bytes.hpp"
#include "data/readers/common.hpp"
#include "data/readers/file.hpp"
#include "data/readers/readers.hpp"
#include "data/readers/token_windows.hpp"
#include "data/tokenizer/tokenizer_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

class TokenFiles : public TokenSource {
 public:
  /// `width`: bytes of a token, 2 or 4.
  TokenFiles(const std::vector<std::string>& paths, std::int64_t width) : width_(width) {
    for (const auto& path : paths) {
      files_.push_back(std::make_unique<File>(path, counter_));
      const auto bytes = static_cast<std::int64_t>(files_.back()->size());
      if (bytes % width != 0) {
        throw Error(ExitCode::data, fmt::format("{}: {} bytes; tokens of {} bits take {}", path, bytes, width * 8,
                                                width == 2 ? "an even number" : "a multiple of 4"));
      }
      size_ += bytes / width;
      ends_.push_back(size_);
    }
  }

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] std::uint64_t bytes_read() const override { return *counter_; }

  void read(std::int64_t first, std::span<std::int32_t> out) const override {
    if (width_ == 4) return read_raw(first, out);
    std::vector<std::uint16_t> raw(out.size());
    read_raw(first, std::span(raw));
    std::copy(raw.begin(), raw.end(), out.begin());
  }
  [[nodiscard]] std::int64_t bytes() const { return size_ * width_; }
  /// Adds tokens as the files have them.
  void add(const std::vector<std::int32_t>& tokens, Sha256& digest) const {
    if (width_ == 4) return void(digest.add(std::as_bytes(std::span(tokens))));
    const std::vector<std::uint16_t> raw(tokens.begin(), tokens.end());
    digest.add(std::as_bytes(std::span(raw)));
  }

 private:
  template <class Token>
  void read_raw(std::int64_t first, std::span<Token> out) const {
    auto file = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin());
    while (!out.empty()) {
      LOCKSTEP_CHECK(file < files_.size(), "the position of a token");
      const auto count = static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(out), ends_[file] - first));
      const std::int64_t begin = file == 0 ? 0 : ends_[file - 1];
      files_[file]->read(static_cast<std::uint64_t>((first - begin) * width_),
                         std::as_writable_bytes(out.first(count)));
      out = out.subspan(count);
      first += static_cast<std::int64_t>(count);
      ++file;
    }
  }

  std::int64_t width_;
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

/// Reads all of a small set, or spots of a large one; returns the largest token seen (-1: none) and the digest.
std::string scan(const TokenFiles& files) {
  Sha256 digest;
  digest.add(fmt::format("tokens 1 {}\n", files.size()));
  constexpr std::int64_t kPiece = 1 << 19;
  const bool whole = is_small(files);
  const std::int64_t step = whole ? kPiece : files.size() / kSpotChecks;
  const std::int64_t length = whole ? kPiece : 2048;
  std::vector<std::int32_t> piece;
  std::int64_t most = -1;
  for (std::int64_t at = 0; at < files.size(); at += step) {
    piece.resize(static_cast<std::size_t>(std::min(length, files.size() - at)));
    files.read(at, piece);
    files.add(piece, digest);
    for (const auto token : piece) most = std::max<std::int64_t>(most, static_cast<std::uint32_t>(token));
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
  TokenWindows::Options windows = TokenWindows::options_of(source);
  if (!info.tokenizer.empty()) {
    if (options.notes != nullptr) options.notes->made_from_file(tokenizer_beside(source.paths.front()));
    const auto tokenizer = parse_tokenizer(info.tokenizer, tokenizer_beside(source.paths.front()));
    info.vocabulary = tokenizer->vocabulary();
    windows = TokenWindows::options_of(source, *tokenizer, options.like);
    require_tokenizer_like(options.like, info.tokenizer, info.source);
  }
  const std::int64_t width = token_bytes(info.vocabulary);
  info.format = fmt::format("tokens of {} bits", width * 8);
  auto files = std::make_shared<TokenFiles>(source.paths, width);
  const std::string found = noted(options.notes, "largest token", [&] { return scan(*files); });
  ByteReader reader(found, "noted tokens end too early");
  const auto most = reader.value<std::int64_t>();
  info.digest = reader.text(reader.rest().size());
  info.content_in_digest = is_small(*files);
  if (options.like != nullptr) {
    info.vocabulary = options.like->vocabulary - (windows.adds_mask() ? 1 : 0);  // without the mask
  } else if (info.tokenizer.empty()) {
    info.vocabulary = info.content_in_digest ? std::max(most, windows.mask_token) + 1 : 0;
  }
  if (info.vocabulary > 0 && most >= info.vocabulary) {
    throw Error(ExitCode::data, fmt::format("{}: token {}; the {}'s are below {}", info.source, most,
                                            options.like != nullptr ? "training set" : "tokenizer", info.vocabulary));
  }
  const std::int64_t size = files->size();
  return std::make_unique<TokenWindows>(std::move(files), std::move(info), windows, 0, size);
}

}  // namespace lockstep::data
