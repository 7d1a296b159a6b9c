// Bytes as text.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// RFC 4648, with padding and without line breaks.
[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace lockstep
