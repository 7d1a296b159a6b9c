// Built with AVX2 and FMA (src/CMakeLists.txt); called only on processors that have them.
#include <immintrin.h>

#include "device/cpu/gemm_tile.hpp"

namespace lockstep::device {

namespace {

struct Avx2 {
  using Vector = __m256;
  static constexpr int kRows = 6, kVectors = 2;  // 12 sums, 2 columns and 1 element, in 16 registers
  static LOCKSTEP_TILE Vector all(float x) { return _mm256_set1_ps(x); }
  static LOCKSTEP_TILE Vector multiply_add(Vector a, Vector b, Vector sum) { return _mm256_fmadd_ps(a, b, sum); }

  /// Swaps upper's lanes whose number has the bit `Half` with lower's lanes whose number does not.
  template <int Half>
  static LOCKSTEP_TILE void exchange(Vector& upper, Vector& lower) {
    const Vector a = upper, b = lower;
    if constexpr (Half == 4) {
      upper = _mm256_permute2f128_ps(a, b, 0x20);
      lower = _mm256_permute2f128_ps(a, b, 0x31);
    } else if constexpr (Half == 2) {
      upper = _mm256_shuffle_ps(a, b, 0x44);
      lower = _mm256_shuffle_ps(a, b, 0xEE);
    } else {
      upper = _mm256_blend_ps(a, _mm256_moveldup_ps(b), 0xAA);
      lower = _mm256_blend_ps(_mm256_movehdup_ps(a), b, 0xAA);
    }
  }
};

}  // namespace

GemmTiles gemm_tiles_avx2() {
  return Tiles<Avx2>::get();
}

}  // namespace lockstep::device
