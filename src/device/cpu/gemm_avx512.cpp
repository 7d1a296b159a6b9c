// Built with AVX-512 (src/CMakeLists.txt); called only on processors that have it.
#include <immintrin.h>

#include "device/cpu/gemm_tile.hpp"

namespace lockstep::device {

namespace {

struct Avx512 {
  using Vector = __m512;
  static constexpr int kRows = 8, kVectors = 3;  // 24 sums, 3 columns and 1 element, in 32 registers
  static LOCKSTEP_TILE Vector all(float x) { return _mm512_set1_ps(x); }
  static LOCKSTEP_TILE Vector multiply_add(Vector a, Vector b, Vector sum) { return _mm512_fmadd_ps(a, b, sum); }

  /// Swaps upper's lanes whose number has the bit `Half` with lower's lanes whose number does not.
  template <int Half>
  static LOCKSTEP_TILE void exchange(Vector& upper, Vector& lower) {
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i half = _mm512_set1_epi32(Half), other = _mm512_set1_epi32(16);
    const __mmask16 high = _mm512_test_epi32_mask(lanes, half);
    // Lane l of the new upper: l of upper, or l - Half of lower. Lane l of the new lower: l + Half of upper, or l of
    // lower.
    const __m512i for_upper = _mm512_mask_add_epi32(lanes, high, _mm512_sub_epi32(lanes, half), other);
    const __m512i for_lower = _mm512_mask_add_epi32(_mm512_add_epi32(lanes, half), high, lanes, other);
    const Vector a = upper, b = lower;
    upper = _mm512_permutex2var_ps(a, for_upper, b);
    lower = _mm512_permutex2var_ps(a, for_lower, b);
  }
};

}  // namespace

GemmTiles gemm_tiles_avx512() {
  return Tiles<Avx512>::get();
}

}  // namespace lockstep::device
