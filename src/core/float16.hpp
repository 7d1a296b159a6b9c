// float16: IEEE 754's half, with a sign, 5 bits of exponent and 10 of fraction; rounded to the nearest, ties to even.
// The largest finite value is 65504, the smallest 2^-24. Bit operations, one exact product and one sum that rounds as
// all of ours do, so that every machine has the same, which is also what x86's F16C makes. NaNs come out quiet, with
// the upper bits of their payload.
//
// Which of several cases it is, masks say: of `?:` the compiler makes branches, and then no vectors.
#pragma once

#include <bit>
#include <cstdint>

#include "core/host_device.hpp"
#include "core/vectorize.hpp"

namespace lockstep {

/// All bits set where a < b; both below 2^31.
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE std::uint32_t mask_below(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(a - b) >> 31);
}

LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE std::uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t size = bits & 0x7fffffffU;  // without the sign
  // From 2^-14 on: another exponent and a shorter fraction. A carry goes up into the exponent, as it should.
  const std::uint32_t normal = (size - 0x38000000U + 0xfffU + ((size >> 13) & 1U)) >> 13;
  // Below, as many 2^-24 as there are: that is the last bit of a sum with 0.5, which rounds.
  const auto subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000U;
  const std::uint32_t nan = 0x7e00U | ((size >> 13) & 0x3ffU);
  const std::uint32_t is_subnormal = mask_below(size, 0x38800000U);
  const std::uint32_t is_normal = mask_below(size, 0x47800000U) & ~is_subnormal;  // below 65536
  const std::uint32_t is_nan = mask_below(0x7f800000U, size);
  const std::uint32_t is_infinite = ~(is_subnormal | is_normal | is_nan);
  const std::uint32_t half =
      (is_subnormal & subnormal) | (is_normal & normal) | (is_infinite & 0x7c00U) | (is_nan & nan);
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000U) | half);
}

LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float from_float16(std::uint16_t bits) {
  const std::uint32_t size = bits & 0x7fffU;
  const std::uint32_t is_subnormal = mask_below(size, 0x400U), is_number = mask_below(size, 0x7c00U);
  const std::uint32_t exponent = 0x38000000U + (~is_number & 0x38000000U);  // that of what is no number goes to the top
  const std::uint32_t quiet = mask_below(0x7c00U, size) & 0x400000U;
  const auto subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(size)) * 0x1p-24F);
  const std::uint32_t wide = (is_subnormal & subnormal) | (~is_subnormal & (((size << 13) + exponent) | quiet));
  return std::bit_cast<float>(((bits & 0x8000U) << 16) | wide);
}

}  // namespace lockstep
