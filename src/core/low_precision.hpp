// The low-precision types of mixed precision, chosen at run time (functions) or at compile time (structs, for templates
// and GPUs). Values are stored in 16 bits, rounded to nearest, ties to even, by operations with the same result on
// every machine.
#pragma once

#include <bit>
#include <cstdint>

#include "core/host_device.hpp"
#include "core/vectorize.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep {

/// The upper half of a float32.
struct Bfloat16 {
  static constexpr DType kType = DType::bf16;

  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE std::uint16_t from_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;  // rounding could turn a NaN into infinity
    return (is_nan ? bits | 0x400000U : rounded) >> 16;
  }
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float to_float(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// IEEE 754 half precision: a sign, 5 bits of exponent and 10 of fraction. The largest finite value is 65504, the
/// smallest positive one 2^-24. Uses only bit operations, one exact product and one sum with the default rounding; the
/// results are those of x86's F16C. NaNs become quiet and keep the upper bits of their payload.
///
/// Cases are selected by masks: with `?:` the compiler generates branches and does not vectorize.
struct Float16 {
  static constexpr DType kType = DType::f16;

  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE std::uint16_t from_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t size = bits & 0x7fffffffU;  // without the sign
    // From 2^-14 on: rebias the exponent and shorten the fraction. A carry goes up into the exponent, as it should.
    const std::uint32_t normal = (size - 0x38000000U + 0xfffU + ((size >> 13) & 1U)) >> 13;
    // Below: the number of units of 2^-24, which is the last bit of a sum with 0.5; the addition rounds.
    const auto subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000U;
    const std::uint32_t nan = 0x7e00U | ((size >> 13) & 0x3ffU);
    const std::uint32_t is_subnormal = mask_below(size, 0x38800000U);
    const std::uint32_t is_normal = mask_below(size, 0x47800000U) & ~is_subnormal;  // below 65536
    const std::uint32_t is_nan = mask_below(0x7f800000U, size);
    const std::uint32_t is_infinite = ~(is_subnormal | is_normal | is_nan);
    const std::uint32_t half =
        (is_subnormal & subnormal) | (is_normal & normal) | (is_infinite & 0x7c00U) | (is_nan & nan);
    return ((bits >> 16) & 0x8000U) | half;
  }
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float to_float(std::uint16_t bits) {
    const std::uint32_t size = bits & 0x7fffU;
    const std::uint32_t is_subnormal = mask_below(size, 0x400U), is_number = mask_below(size, 0x7c00U);
    const std::uint32_t exponent = 0x38000000U + (~is_number & 0x38000000U);  // inf and NaN get the largest exponent
    const std::uint32_t quiet = mask_below(0x7c00U, size) & 0x400000U;
    const auto subnormal = std::bit_cast<std::uint32_t>((static_cast<std::int32_t>(size)) * 0x1p-24F);
    const std::uint32_t wide = (is_subnormal & subnormal) | (~is_subnormal & (((size << 13) + exponent) | quiet));
    return std::bit_cast<float>(((bits & 0x8000U) << 16) | wide);
  }

 private:
  /// All bits set where a < b; both below 2^31.
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE std::uint32_t mask_below(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a - b) >> 31;
  }
};

/// Whether `type` is bf16 or f16; the functions below are for these only.
[[nodiscard]] constexpr bool is_low_precision(DType type) {
  return type == DType::bf16 || type == DType::f16;
}

/// `from` and `to` have n values each and must not overlap.
void downcast(DType to_type, const float* from, std::uint16_t* to, std::int64_t n);
void upcast(DType from_type, const std::uint16_t* from, float* to, std::int64_t n);
/// Rounds to the nearest values of the type; in f16 infinite from 65520 on.
void round_to(DType type, const float* from, float* to, std::int64_t n);
/// sum = a + b, added in float32 and rounded; `sum` may be `a` or `b`.
void add_low_precision(DType type, const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* sum, std::int64_t n);

}  // namespace lockstep
