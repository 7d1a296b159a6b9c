// Between text and token numbers, as a token data set has them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/data_set.hpp"

namespace lockstep::cli {

/// Three ways: characters (DataSetInfo::token_text), bytes, or, where the set knows neither, the numbers themselves
/// separated by spaces.
class TokenCodec {
 public:
  explicit TokenCodec(const DataSetInfo& info);

  /// Throws Error(usage) that names the first character or number that is no token.
  [[nodiscard]] std::vector<std::int32_t> encode(const std::string& text) const;
  /// What `token` adds to a text that ends with `text`: numbers are kept apart by one space.
  [[nodiscard]] std::string decode_after(const std::string& text, std::int32_t token) const;

 private:
  enum class Kind { characters, bytes, numbers };
  [[nodiscard]] std::vector<std::int32_t> encode_characters(const std::string& text) const;
  [[nodiscard]] std::vector<std::int32_t> encode_numbers(const std::string& text) const;

  Kind kind_;
  std::int64_t vocabulary_;
  std::vector<std::string> text_;
  std::map<std::string, std::int32_t> number_;
};

}  // namespace lockstep::cli
