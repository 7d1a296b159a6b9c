// Strict UTF-8: no overlong forms, no surrogates.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::data {

/// Throws Error(data) that names `where` and the byte.
[[nodiscard]] std::u32string from_utf8(std::string_view text, const std::string& where);
[[nodiscard]] std::string to_utf8(char32_t character);

}  // namespace lockstep::data
