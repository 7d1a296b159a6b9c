#include "core/low_precision.hpp"

#include "lockstep/error.hpp"

namespace lockstep {

namespace {

template <class Format>
LOCKSTEP_VECTORIZED void downcast_run(const float* from, std::uint16_t* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = Format::from_float(from[i]);
}

template <class Format>
LOCKSTEP_VECTORIZED void upcast_run(const std::uint16_t* from, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = Format::to_float(from[i]);
}

template <class Format>
LOCKSTEP_VECTORIZED void round_run(const float* from, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = Format::to_float(Format::from_float(from[i]));
}

template <class Format>
LOCKSTEP_VECTORIZED void add_run(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* sum, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = Format::from_float(Format::to_float(a[i]) + Format::to_float(b[i]));
}

bool is_half(DType type) {
  LOCKSTEP_CHECK(is_low_precision(type), "bf16 or f16");
  return type == DType::f16;
}

}  // namespace

void downcast(DType to_type, const float* from, std::uint16_t* to, std::int64_t n) {
  is_half(to_type) ? downcast_run<Float16>(from, to, n) : downcast_run<Bfloat16>(from, to, n);
}

void upcast(DType from_type, const std::uint16_t* from, float* to, std::int64_t n) {
  is_half(from_type) ? upcast_run<Float16>(from, to, n) : upcast_run<Bfloat16>(from, to, n);
}

void round_to(DType type, const float* from, float* to, std::int64_t n) {
  is_half(type) ? round_run<Float16>(from, to, n) : round_run<Bfloat16>(from, to, n);
}

void add_low_precision(DType type, const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* sum, std::int64_t n) {
  is_half(type) ? add_run<Float16>(a, b, sum, n) : add_run<Bfloat16>(a, b, sum, n);
}

}  // namespace lockstep
