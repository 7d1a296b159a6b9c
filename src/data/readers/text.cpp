// Text: every character (Unicode code point) or byte is a token. The files are joined in order, read completely, and
// kept as 16-bit tokens. Characters are numbered in the order of their code points, over the whole text.
#include <fmt/format.h>

#include <algorithm>

#include "core/digest.hpp"
#include "data/bytes.hpp"
#include "data/readers/common.hpp"
#include "data/readers/file.hpp"
#include "data/readers/readers.hpp"
#include "data/readers/token_windows.hpp"
#include "data/readers/utf8.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

class HeldTokens : public TokenSource {
 public:
  HeldTokens(std::vector<std::uint16_t> tokens, ByteCounter counter)
      : tokens_(std::move(tokens)), counter_(std::move(counter)) {}
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(tokens_.size()); }
  [[nodiscard]] std::uint64_t bytes_read() const override { return *counter_; }
  void read(std::int64_t first, std::span<std::int32_t> out) const override {
    std::copy_n(tokens_.begin() + first, out.size(), out.begin());
  }

 private:
  std::vector<std::uint16_t> tokens_;
  ByteCounter counter_;
};

constexpr std::size_t kCodePoints = 0x110000;

/// The distinct characters, in the order of their code points.
std::vector<std::string> collect(const std::vector<std::u32string>& parts, const std::string& source) {
  std::vector<bool> occurs(kCodePoints);
  for (const auto& part : parts) {
    for (const char32_t c : part) occurs[c] = true;
  }
  std::vector<std::string> text;
  for (char32_t c = 0; c < kCodePoints; ++c) {
    if (occurs[c]) text.push_back(to_utf8(c));
  }
  if (text.size() > 65'536) {
    throw Error(ExitCode::data,
                fmt::format("{}: {} different characters; expected at most 65536. Use `tokenizer: bytes`", source,
                            text.size()));
  }
  return text;
}

std::vector<std::uint16_t> encode(const std::vector<std::u32string>& parts, const std::vector<std::string>& paths,
                                  const std::vector<std::string>& vocabulary) {
  std::vector<std::int32_t> number(kCodePoints, -1);
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    number.at(from_utf8(vocabulary[i], "the vocabulary").front()) = static_cast<std::int32_t>(i);
  }
  std::vector<std::uint16_t> tokens;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    tokens.reserve(tokens.size() + parts[i].size());
    for (const char32_t c : parts[i]) {
      if (number[c] < 0) {
        throw Error(ExitCode::data,
                    fmt::format("{}: the character '{}' (U+{:04X}) does not occur in the training text. "
                                "Use `tokenizer: bytes`, or one text and a fraction of it",
                                paths[i], to_utf8(c), static_cast<std::uint32_t>(c)));
      }
      tokens.push_back(static_cast<std::uint16_t>(number[c]));
    }
  }
  return tokens;
}

std::string write_texts(const std::vector<std::string>& texts) {
  std::string out;
  for (const auto& text : texts) append_text(out, text);
  return out;
}

std::vector<std::string> read_texts(const std::string& note) {
  ByteReader reader(note, "a noted vocabulary ends too early");
  std::vector<std::string> texts;
  while (!reader.rest().empty()) texts.push_back(reader.text());
  return texts;
}

std::string digest_of(const DataSetInfo& info, const std::vector<std::vector<std::byte>>& files) {
  Sha256 digest;
  digest.add(info.format + "\n");
  for (const auto& file : files) digest.add(file);
  for (const auto& text : info.token_text) digest.add(text);
  return digest.hex();
}

}  // namespace

std::unique_ptr<DataSet> open_text(const SourceOptions& source, const IndexOptions& options) {
  const bool bytes = source.tokenizer == Tokenizer::bytes;
  const auto counter = make_byte_counter();
  DataSetInfo info;
  info.format = bytes ? "text, bytes" : "text, characters";
  info.source = describe(source.paths);
  std::vector<std::vector<std::byte>> files;
  for (const auto& path : source.paths) {
    if (options.notes != nullptr) options.notes->made_from_file(path);
    files.push_back(read_whole(File(path, counter)));
  }
  std::vector<std::uint16_t> tokens;
  if (bytes) {
    info.vocabulary = 256;
    for (const auto& file : files) {
      for (const auto byte : file) tokens.push_back(std::to_integer<std::uint16_t>(byte));
    }
  } else {
    std::vector<std::u32string> parts;
    for (std::size_t i = 0; i < files.size(); ++i) {
      parts.push_back(from_utf8({reinterpret_cast<const char*>(files[i].data()), files[i].size()}, source.paths[i]));
    }
    info.token_text =
        options.like != nullptr
            ? options.like->token_text
            : read_texts(noted(options.notes, "vocabulary", [&] { return write_texts(collect(parts, info.source)); }));
    info.vocabulary = static_cast<std::int64_t>(info.token_text.size());
    tokens = encode(parts, source.paths, info.token_text);
  }
  // The digest of a validation text depends on the vocabulary.
  const std::string key = options.like != nullptr ? "digest, like " + options.like->digest : "digest";
  info.digest = noted(options.notes, key, [&] { return digest_of(info, files); });
  const auto count = static_cast<std::int64_t>(tokens.size());
  return std::make_unique<TokenWindows>(std::make_shared<HeldTokens>(std::move(tokens), counter), std::move(info),
                                        TokenWindows::Options{source.context, source.masked}, 0, count);
}

}  // namespace lockstep::data
