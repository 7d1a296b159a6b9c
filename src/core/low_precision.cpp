#include "core/low_precision.hpp"

#include "lockstep/error.hpp"

namespace lockstep {

LOCKSTEP_VECTORIZED void to_bfloat16(const float* from, std::uint16_t* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_bfloat16(from[i]);
}

LOCKSTEP_VECTORIZED void from_bfloat16(const std::uint16_t* from, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = from_bfloat16(from[i]);
}

LOCKSTEP_VECTORIZED void round_to_bfloat16(const float* from, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = from_bfloat16(to_bfloat16(from[i]));
}

LOCKSTEP_VECTORIZED void add_bfloat16(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* sum,
                                      std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = to_bfloat16(from_bfloat16(a[i]) + from_bfloat16(b[i]));
}

LOCKSTEP_VECTORIZED void to_float16(const float* from, std::uint16_t* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_float16(from[i]);
}

LOCKSTEP_VECTORIZED void from_float16(const std::uint16_t* from, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = from_float16(from[i]);
}

LOCKSTEP_VECTORIZED void round_to_float16(const float* from, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = from_float16(to_float16(from[i]));
}

LOCKSTEP_VECTORIZED void add_float16(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* sum,
                                     std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = to_float16(from_float16(a[i]) + from_float16(b[i]));
}

namespace {

bool is_half(DType type) {
  LOCKSTEP_CHECK(is_low_precision(type), "bf16 or f16");
  return type == DType::f16;
}

}  // namespace

void downcast(DType to_type, const float* from, std::uint16_t* to, std::int64_t n) {
  is_half(to_type) ? to_float16(from, to, n) : to_bfloat16(from, to, n);
}

void upcast(DType from_type, const std::uint16_t* from, float* to, std::int64_t n) {
  is_half(from_type) ? from_float16(from, to, n) : from_bfloat16(from, to, n);
}

void round_to(DType type, const float* from, float* to, std::int64_t n) {
  is_half(type) ? round_to_float16(from, to, n) : round_to_bfloat16(from, to, n);
}

void add_low_precision(DType type, const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* sum, std::int64_t n) {
  is_half(type) ? add_float16(a, b, sum, n) : add_bfloat16(a, b, sum, n);
}

}  // namespace lockstep
