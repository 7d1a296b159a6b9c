// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78; RFC 3720, appendix B.4), a byte at a time.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::telemetry {

[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

/// As records of event files carry it: rotated and shifted, so that the checksum of data that hold their own checksum
/// is no special case.
[[nodiscard]] std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace lockstep::telemetry
