// bfloat16: the upper half of a float32, rounded to the nearest, ties to even. Pure bit operations, so that every
// machine has the same.
#pragma once

#include <bit>
#include <cstdint>

#include "core/host_device.hpp"
#include "core/vectorize.hpp"

namespace lockstep {

LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;  // rounding could make infinity of it
  return static_cast<std::uint16_t>((is_nan ? bits | 0x400000U : rounded) >> 16);
}

LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace lockstep
