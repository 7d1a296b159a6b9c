#include "core/float16.hpp"

namespace lockstep {

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

}  // namespace lockstep
