#include "core/bfloat16.hpp"

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

}  // namespace lockstep
