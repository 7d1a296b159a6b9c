// The low-precision types of mixed precision, chosen by name at run time (functions) or when compiled (structs, for
// templates and GPUs). Values stand as 16 bits each.
#pragma once

#include <cstdint>

#include "core/bfloat16.hpp"
#include "core/float16.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep {

struct Bfloat16 {
  static constexpr DType kType = DType::bf16;
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE std::uint16_t from_float(float value) { return to_bfloat16(value); }
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float to_float(std::uint16_t bits) { return from_bfloat16(bits); }
};

struct Float16 {
  static constexpr DType kType = DType::f16;
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE std::uint16_t from_float(float value) { return to_float16(value); }
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float to_float(std::uint16_t bits) { return from_float16(bits); }
};

/// Whether it is bf16 or f16; the functions below are for these only.
[[nodiscard]] constexpr bool is_low_precision(DType type) {
  return type == DType::bf16 || type == DType::f16;
}

/// Arrays of n values; they do not overlap.
void downcast(DType to_type, const float* from, std::uint16_t* to, std::int64_t n);
void upcast(DType from_type, const std::uint16_t* from, float* to, std::int64_t n);
/// The nearest values that the type has; in f16 infinite from 65520 on.
void round_to(DType type, const float* from, float* to, std::int64_t n);
/// sum = a + b, added in float32 and rounded; it may be one of them.
void add_low_precision(DType type, const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* sum, std::int64_t n);

}  // namespace lockstep
