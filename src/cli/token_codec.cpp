#include "cli/token_codec.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <sstream>

#include "data/readers/utf8.hpp"
#include "data/tokenizer/tokenizer_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

TokenCodec::TokenCodec(const DataSetInfo& info)
    : kind_(Kind::numbers), vocabulary_(info.vocabulary), text_(info.token_text) {
  if (!info.tokenizer.empty()) {
    kind_ = Kind::tokenizer;
    tokenizer_ = data::parse_tokenizer(info.tokenizer, "the tokenizer of the training data");
  } else if (!text_.empty()) {
    kind_ = Kind::characters;
  } else if (info.format == "text, bytes" || info.format == "texts, bytes") {
    kind_ = Kind::bytes;
  }
  for (std::size_t i = 0; i < text_.size(); ++i) number_[text_[i]] = i;
}

std::vector<std::int32_t> TokenCodec::encode(const std::string& text) const {
  if (kind_ == Kind::tokenizer) {
    auto tokens = tokenizer_->prefix();
    const auto rest = tokenizer_->encode(text, "--prompt");
    tokens.insert(tokens.end(), rest.begin(), rest.end());
    return tokens;
  }
  if (kind_ == Kind::characters) return encode_characters(text);
  if (kind_ == Kind::numbers) return encode_numbers(text);
  std::vector<std::int32_t> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::vector<std::int32_t> TokenCodec::encode_characters(const std::string& text) const {
  std::vector<std::int32_t> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const std::string character = text.substr(at, data::utf8_length(text[at]));
    const auto found = number_.find(character);
    if (found == number_.end()) {
      throw Error(ExitCode::usage, fmt::format("--prompt: expected characters of the training text ({} of them), found "
                                               "'{}', which is not there; remove it",
                                               text_.size(), character));
    }
    tokens.push_back(found->second);
    at += character.size();
  }
  return tokens;
}

std::vector<std::int32_t> TokenCodec::encode_numbers(const std::string& text) const {
  std::vector<std::int32_t> tokens;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::int32_t token = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
    const bool below = vocabulary_ == 0 || token < vocabulary_;
    if (error != std::errc{} || end != word.data() + word.size() || token < 0 || !below) {
      throw Error(ExitCode::usage, fmt::format("--prompt: the data are token files without text: expected numbers of "
                                               "tokens below {}, found '{}'",
                                               vocabulary_ == 0 ? 65536 : vocabulary_, word));
    }
    tokens.push_back(token);
  }
  return tokens;
}

std::string TokenCodec::decode_after(const std::string& text, std::int32_t token) const {
  if (kind_ == Kind::numbers) {
    const bool apart = text.empty() || std::isspace(static_cast<unsigned char>(text.back())) != 0;
    return fmt::format("{}{}", apart ? "" : " ", token);
  }
  if (kind_ == Kind::tokenizer) return tokenizer_->piece(token);
  if (kind_ == Kind::bytes) return std::string(1, static_cast<char>(token));
  const std::size_t index = token;
  return index < text_.size() ? text_[index] : "?";
}

}  // namespace lockstep::cli
