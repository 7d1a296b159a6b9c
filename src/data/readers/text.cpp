// Text: every character (Unicode code point) or byte is a token, or a tokenizer says what one is. The files are joined
// in order, read completely, and kept as tokens. Characters are numbered in the order of their code points, over the
// whole text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/digest.hpp"
#include "data/bytes.hpp"
#include "data/readers/characters.hpp"
#include "data/readers/common.hpp"
#include "data/readers/file.hpp"
#include "data/readers/readers.hpp"
#include "data/readers/token_windows.hpp"
#include "data/readers/utf8.hpp"
#include "data/tokenizer/tokenizer_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

/// `Token`: 16 bits where these do.
template <class Token>
class HeldTokens : public TokenSource {
 public:
  HeldTokens(std::vector<Token> tokens, ByteCounter counter)
      : tokens_(std::move(tokens)), counter_(std::move(counter)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(tokens_.size()); }
  std::uint64_t bytes_read() const override { return *counter_; }
  void read(std::int64_t first, std::span<std::int32_t> out) const override {
    std::copy_n(tokens_.begin() + first, out.size(), out.begin());
  }

 private:
  std::vector<Token> tokens_;
  ByteCounter counter_;
};

std::vector<std::uint16_t> encode(const std::vector<std::u32string>& parts, const std::vector<std::string>& paths,
                                  const std::vector<std::string>& vocabulary) {
  const CharacterNumbers numbers(vocabulary);
  std::vector<std::uint16_t> tokens;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    tokens.reserve(tokens.size() + parts[i].size());
    for (const char32_t c : parts[i]) tokens.push_back(numbers.of(c, paths[i]));
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
  digest.add(info.tokenizer);
  return digest.hex();
}

std::string_view text_of_file(const std::vector<std::byte>& file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

/// Each file is a text of its own.
std::vector<std::int32_t> encode_files(const TextTokenizer& tokenizer, const std::vector<std::vector<std::byte>>& files,
                                       const std::vector<std::string>& paths) {
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < files.size(); ++i) {
    tokens.insert(tokens.end(), tokenizer.prefix().begin(), tokenizer.prefix().end());
    const auto text = tokenizer.encode(text_of_file(files[i]), paths[i]);
    tokens.insert(tokens.end(), text.begin(), text.end());
    tokens.insert(tokens.end(), tokenizer.suffix().begin(), tokenizer.suffix().end());
  }
  return tokens;
}

/// The text of the source's own, or of the training set's; "": the text is split into characters or bytes.
std::string tokenizer_of_text(const SourceOptions& source, const DataSetInfo* like) {
  if (!source.tokenizer_file.empty()) {
    std::string text = read_tokenizer_text(source.tokenizer_file);  // of its own digest, so never noted
    require_tokenizer_like(like, text, describe(source.paths));
    return text;
  }
  if (like == nullptr) return "";
  if (like->tokenizer.empty() && !like->format.starts_with("text")) {
    throw Error(ExitCode::data, fmt::format("{}: expected a training set of text, too, whose tokens are known, found "
                                            "one of {}",
                                            describe(source.paths), like->format));
  }
  return like->tokenizer;
}

template <class Token>
std::shared_ptr<TokenSource> hold(std::vector<Token> tokens, ByteCounter counter) {
  return std::make_shared<HeldTokens<Token>>(std::move(tokens), std::move(counter));
}

}  // namespace

DataSetInfo foresee_text(const SourceOptions& source) {
  DataSetInfo info;
  if (splits_bytes(source)) info.vocabulary = kByteTokens;
  TokenWindows::describe(TokenWindows::options_of(source), info);
  return info;
}

std::unique_ptr<DataSet> open_text(const SourceOptions& source, const IndexOptions& options) {
  const DataSetInfo* const like = options.like;
  TokenWindows::Options windows = TokenWindows::options_of(source, like);
  const auto counter = make_byte_counter();
  DataSetInfo info;
  info.source = describe(source.paths);
  info.tokenizer = tokenizer_of_text(source, like);
  const bool bytes = like == nullptr ? splits_bytes(source) : like->token_text.empty();
  info.format = !info.tokenizer.empty() ? "text, byte pairs" : bytes ? "text, bytes" : "text, characters";
  std::vector<std::vector<std::byte>> files;
  for (const auto& path : source.paths) {
    if (options.notes != nullptr) options.notes->made_from_file(path);
    files.push_back(read_whole(File(path, counter)));
  }
  std::vector<std::uint16_t> tokens;
  std::shared_ptr<TokenSource> held;
  if (!info.tokenizer.empty()) {
    const bool is_own = !source.tokenizer_file.empty();
    const auto tokenizer = parse_tokenizer(info.tokenizer, is_own ? source.tokenizer_file : like->source);
    info.vocabulary = tokenizer->vocabulary();
    windows = TokenWindows::options_of(source, *tokenizer, like);
    held = hold(encode_files(*tokenizer, files, source.paths), counter);
  } else if (bytes) {
    info.vocabulary = kByteTokens;
    for (const auto& file : files) {
      for (const auto byte : file) tokens.push_back(std::to_integer<std::uint16_t>(byte));
    }
  } else {
    std::vector<std::u32string> parts;
    for (std::size_t i = 0; i < files.size(); ++i) {
      parts.push_back(from_utf8(text_of_file(files[i]), source.paths[i]));
    }
    info.token_text = like != nullptr ? like->token_text : read_texts(noted(options.notes, "vocabulary", [&] {
      return write_texts(distinct_characters(parts, info.source));
    }));
    info.vocabulary = info.token_text.size();
    tokens = encode(parts, source.paths, info.token_text);
  }
  const auto key =
      fmt::format("digest by {}", sha256(fmt::format("{}\n{}", info.tokenizer, fmt::join(info.token_text, "\n"))));
  info.warnings = unused_token_settings(source, like);
  info.digest = noted(options.notes, key, [&] { return digest_of(info, files); });
  if (!held) held = hold(std::move(tokens), counter);
  const std::int64_t count = held->size();
  return std::make_unique<TokenWindows>(std::move(held), std::move(info), windows, 0, count);
}

}  // namespace lockstep::data
