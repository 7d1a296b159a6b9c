// Text: every character (Unicode code point) or byte is a token. The files are joined in their order, read whole,
// and held as 16-bit tokens. Characters are numbered in the order of their code points, over all of the text.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/digest.hpp"
#include "data/readers/bad_samples.hpp"
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

/// Code points to tokens and their texts.
struct Vocabulary {
  std::map<char32_t, std::uint16_t> number;
  std::vector<std::string> text;
};

Vocabulary collect(const std::vector<std::u32string>& parts, const std::string& source) {
  std::set<char32_t> found;
  for (const auto& part : parts) found.insert(part.begin(), part.end());
  if (found.size() > 65'536) {
    throw Error(ExitCode::data,
                fmt::format("{}: {} different characters; expected at most 65536. Use `tokenizer: bytes`", source,
                            found.size()));
  }
  Vocabulary vocabulary;
  for (const char32_t c : found) {
    vocabulary.number[c] = static_cast<std::uint16_t>(vocabulary.text.size());
    vocabulary.text.push_back(to_utf8(c));
  }
  return vocabulary;
}

Vocabulary like(const std::vector<std::string>& text) {
  Vocabulary vocabulary{{}, text};
  for (std::size_t i = 0; i < text.size(); ++i) {
    vocabulary.number[from_utf8(text[i], "the vocabulary").front()] = static_cast<std::uint16_t>(i);
  }
  return vocabulary;
}

std::vector<std::uint16_t> encode(const std::vector<std::u32string>& parts, const std::vector<std::string>& paths,
                                  const Vocabulary& vocabulary) {
  std::vector<std::uint16_t> tokens;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const char32_t c : parts[i]) {
      const auto found = vocabulary.number.find(c);
      if (found == vocabulary.number.end()) {
        throw Error(ExitCode::data,
                    fmt::format("{}: the character '{}' (U+{:04X}) does not occur in the training text. "
                                "Use `tokenizer: bytes`, or one text and a fraction of it",
                                paths[i], to_utf8(c), static_cast<std::uint32_t>(c)));
      }
      tokens.push_back(found->second);
    }
  }
  return tokens;
}

}  // namespace

std::unique_ptr<DataSet> open_text(const SourceOptions& source, const IndexOptions& options) {
  const bool bytes = source.tokenizer == "bytes";
  const auto counter = make_byte_counter();
  DataSetInfo info;
  info.format = bytes ? "text, bytes" : "text, characters";
  info.source = describe(source.paths);
  Sha256 digest;
  digest.add(info.format + "\n");
  std::vector<std::u32string> parts;
  std::vector<std::uint16_t> tokens;
  for (const auto& path : source.paths) {
    const auto contents = read_whole(File(path, counter));
    digest.add(contents);
    const std::string_view text(reinterpret_cast<const char*>(contents.data()), contents.size());
    if (bytes) {
      for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    } else {
      parts.push_back(from_utf8(text, path));
    }
  }
  if (bytes) {
    info.vocabulary = 256;
  } else {
    auto vocabulary = options.like != nullptr ? like(options.like->token_text) : collect(parts, info.source);
    tokens = encode(parts, source.paths, vocabulary);
    info.token_text = std::move(vocabulary.text);
    info.vocabulary = static_cast<std::int64_t>(info.token_text.size());
    for (const auto& text : info.token_text) digest.add(text);
  }
  info.digest = digest.hex();
  const auto count = static_cast<std::int64_t>(tokens.size());
  return std::make_unique<TokenWindows>(std::make_shared<HeldTokens>(std::move(tokens), counter), std::move(info),
                                        source.context, 0, count);
}

}  // namespace lockstep::data
