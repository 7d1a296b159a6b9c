// For processors without AVX2 and FMA: four lanes, products and sums rounded separately.
#include "device/cpu/gemm_tile.hpp"

namespace lockstep::device {

namespace {

struct Portable {
  using Vector = float __attribute__((vector_size(16)));
  static constexpr int kRows = 4, kVectors = 2;  // 8 sums, 2 columns and 1 element, in 16 registers
  static LOCKSTEP_TILE Vector all(float x) { return Vector{x, x, x, x}; }
  static LOCKSTEP_TILE Vector multiply_add(Vector a, Vector b, Vector sum) { return sum + a * b; }

  /// Swaps upper's lanes whose number has the bit `Half` with lower's lanes whose number does not.
  template <int Half>
  static LOCKSTEP_TILE void exchange(Vector& upper, Vector& lower) {
    const Vector a = upper, b = lower;
    if constexpr (Half == 2) {
      upper = __builtin_shufflevector(a, b, 0, 1, 4, 5);
      lower = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    } else {
      upper = __builtin_shufflevector(a, b, 0, 4, 2, 6);
      lower = __builtin_shufflevector(a, b, 1, 5, 3, 7);
    }
  }
};

}  // namespace

GemmTiles gemm_tiles_portable() {
  return Tiles<Portable>::get();
}

}  // namespace lockstep::device
