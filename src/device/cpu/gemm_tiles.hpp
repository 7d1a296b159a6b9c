// The inner loops of gemm, once per instruction set: gemm_avx512.cpp, gemm_avx2.cpp and gemm_portable.cpp build
// gemm_tile.hpp with the flags that CMake gives them.
#pragma once

#include <cstdint>

namespace lockstep::device {

/// One panel of the product: c[rows, columns] = scale * a[rows, k] * b[k, columns], or += that.
struct PanelProduct {
  const float* a = nullptr;
  std::int64_t a_row = 0;     ///< the elements of a tile whose first row is `row` start at a + row * a_row;
  std::int64_t a_stride = 0;  ///< its element (r, i) is at r * a_stride + i, or, if transposed, at r + i * a_stride
  bool a_transposed = false;
  const float* b = nullptr;  ///< packed
  std::int64_t rows = 0, columns = 0, k = 0;
  float* c = nullptr;
  std::int64_t c_stride = 0;
  float scale = 1;
  bool add = false;
  const float* next_b = nullptr;  ///< the next packed panel, which is prefetched meanwhile
};

/// The columns of b that make up a panel: element (i, column) is at b[i * b_stride + column], or, if transposed, at b[i
/// + column * b_stride].
struct PanelSource {
  const float* b = nullptr;
  std::int64_t b_stride = 0;
  bool b_transposed = false;
  std::int64_t k = 0, columns = 0;
};

struct GemmTiles {
  std::int64_t rows = 0;   ///< of a tile
  std::int64_t panel = 0;  ///< columns of a panel; packed, it has k rows of that many floats, 64-byte aligned
  void (*multiply)(const PanelProduct& product) = nullptr;
  void (*pack)(const PanelSource& source, float* to) = nullptr;  ///< missing columns become 0
  /// Packs a transposed a, tile by tile: for each of k, the rows of a tile. `to` must have room for whole tiles.
  void (*pack_left)(const float* a, std::int64_t stride, std::int64_t rows, std::int64_t k, float* to) = nullptr;
};

inline constexpr std::int64_t kWidestPanel = 48;

[[nodiscard]] GemmTiles gemm_tiles_avx512();  ///< requires AVX-512F, DQ, BW, VL
[[nodiscard]] GemmTiles gemm_tiles_avx2();    ///< requires AVX2 and FMA
[[nodiscard]] GemmTiles gemm_tiles_portable();

}  // namespace lockstep::device
