// CRC-32 of each piece of some bytes, kept with a file so that a part of it can be verified without reading the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::store {

/// The number of pieces of `piece` bytes, the last of which may be shorter.
[[nodiscard]] constexpr std::uint64_t pieces_of(std::uint64_t bytes, std::uint64_t piece) {
  return (bytes + piece - 1) / piece;
}

[[nodiscard]] std::vector<std::uint32_t> checksums_of(std::span<const std::byte> bytes, std::uint64_t piece);

}  // namespace lockstep::store
