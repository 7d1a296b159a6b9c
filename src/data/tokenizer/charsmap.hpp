// SentencePiece's compiled normalization: a double array (Aoe 1989, as Darts-clone stores it) from characters to the
// text that replaces them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

class Charsmap {
 public:
  /// Of the file's bytes. Throws Error(data) that begins with `where`.
  Charsmap(std::string_view bytes, const std::string& where);
  void normalize(std::string& text) const;

 private:
  std::optional<std::string_view> replacement(std::string_view characters) const;
  std::vector<std::uint32_t> units_;
  std::string texts_;  ///< each ends with a zero
};

/// Throws Error(data) that begins with `where`.
[[nodiscard]] std::string from_base64(std::string_view text, const std::string& where);

}  // namespace lockstep::data
