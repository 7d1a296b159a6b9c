// Text as the tokens of a data set, for prompts and what continues them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.hpp"
#include "lockstep/data_set.hpp"

namespace lockstep::cli {

/// Between text and tokens, in one of four ways: by the data's tokenizer, by characters (DataSetInfo::token_text), by
/// bytes, or, if the data set has none of these, as numbers of tokens separated by spaces.
class TokenCodec {
 public:
  explicit TokenCodec(const DataSetInfo& info);

  /// Throws Error(usage), naming the first character or number that is not a token. What a tokenizer puts before a
  /// text comes first.
  std::vector<std::int32_t> encode(const std::string& text) const;
  /// What `token` appends to a text that ends with `text`: numbers are separated by one space.
  std::string decode_after(const std::string& text, std::int32_t token) const;

 private:
  enum class Kind { tokenizer, characters, bytes, numbers };
  std::vector<std::int32_t> encode_characters(const std::string& text) const;
  std::vector<std::int32_t> encode_numbers(const std::string& text) const;

  Kind kind_;
  std::int64_t vocabulary_;
  std::vector<std::string> text_;
  std::map<std::string, std::int32_t> number_;
  std::unique_ptr<const data::TextTokenizer> tokenizer_;
};

}  // namespace lockstep::cli
