// Panels of b are packed, on the fly or in advance; for each, a's rows are multiplied in tiles of registers
// (gemm_tile.hpp).
#include "device/cpu/gemm.hpp"

#include <algorithm>

#include "core/round_up.hpp"
#include "device/cpu/cpu_info.hpp"
#include "device/cpu/gemm_tiles.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device {

namespace {

/// The instruction set that oneDNN uses, so that one setting (ONEDNN_MAX_CPU_ISA) and one fingerprint cover both.
GemmTiles choose_tiles() {
  const auto isa = dnnl::get_effective_cpu_isa();
  if (has_isa(isa, dnnl::cpu_isa::avx512_core)) return gemm_tiles_avx512();
  if (has_isa(isa, dnnl::cpu_isa::avx2)) return gemm_tiles_avx2();
  return gemm_tiles_portable();
}

const GemmTiles& tiles() {
  static const GemmTiles kTiles = choose_tiles();
  return kTiles;
}

std::int64_t panels(std::int64_t n) {
  return divide_up<std::int64_t>(n, tiles().panel);
}

const float* element(const MatrixView& matrix, std::int64_t row, std::int64_t column) {
  return matrix.data + (matrix.transposed ? column * matrix.stride + row : row * matrix.stride + column);
}

void pack_panel(const MatrixView& b, std::int64_t row, std::int64_t column, std::int64_t k, std::int64_t columns,
                float* to) {
  tiles().pack({element(b, row, column), b.stride, b.transposed, k, columns}, to);
}

/// Multiplies one panel, a tile of rows at a time, without what the band excludes. `row`, `column`: where the panel of
/// b begins.
void multiply_band(PanelProduct whole, Band band, std::int64_t row, std::int64_t column) {
  const std::int64_t height = tiles().rows;
  for (std::int64_t first = 0; first < whole.rows; first += height) {
    PanelProduct part = whole;
    part.rows = std::min(height, whole.rows - first);
    part.a += first * whole.a_row;
    part.c += first * whole.c_stride;
    const std::int64_t end = first + part.rows - 1 + band.visible;  // end of the last row's columns
    if (band.of == Band::Of::result) {
      part.columns = std::min(whole.columns, end - column);
      if (part.columns <= 0) continue;
    } else if (whole.a_transposed) {
      const std::int64_t skip = std::clamp<std::int64_t>(first - band.visible + 1 - row, 0, whole.k);
      part.a += skip * whole.a_stride;
      part.b += skip * tiles().panel;
      part.k -= skip;
    } else {
      part.k = std::clamp<std::int64_t>(end - row, 0, whole.k);
    }
    tiles().multiply(part);
  }
}

/// Rows of the left factor in the form that PanelProduct needs.
struct Left {
  const float* data = nullptr;
  std::int64_t row = 0, stride = 0;
};

constexpr std::int64_t kPanelsWorthPacking = 3;

/// Packs a transposed left factor in the order in which tiles read it: unpacked, each element of a tile's short column
/// is on a cache line of its own, and if the stride is a power of two, all of these are in the same few sets of the
/// cache.
Left pack_left(std::int64_t m, std::int64_t k, const float* a, std::int64_t stride) {
  const std::int64_t height = tiles().rows;
  thread_local AlignedBytes memory;
  const auto bytes = ((m + height) * k) * sizeof(float);
  if (memory.size() < bytes) memory = AlignedBytes(bytes);
  auto* packed = reinterpret_cast<float*>(memory.data());
  tiles().pack_left(a, stride, m, k, packed);
  return {packed, k, height};
}

/// panel_at(row, column, depth, columns): the packed panel. `next_at`: the panel that comes next, or null.
template <class PanelAt, class NextAt>
void run(std::int64_t m, std::int64_t n, std::int64_t k, const MatrixView& a, const MatrixResult& c, Band band,
         const PanelAt& panel_at, const NextAt& next_at) {
  for (std::int64_t row = 0; row < k; row += kGemmDepth) {
    const std::int64_t depth = std::min(kGemmDepth, k - row);
    const bool pack = a.transposed && band.of == Band::Of::nothing && n >= kPanelsWorthPacking * tiles().panel;
    const Left left = pack ? pack_left(m, depth, element(a, 0, row), a.stride)
                           : Left{element(a, 0, row), a.transposed ? 1 : a.stride, a.stride};
    for (std::int64_t column = 0; column < n; column += tiles().panel) {
      const std::int64_t columns = std::min(tiles().panel, n - column);
      PanelProduct product;
      product.a = left.data;
      product.a_row = left.row;
      product.a_stride = left.stride;
      product.a_transposed = a.transposed;
      product.b = panel_at(row, column, depth, columns);
      product.next_b = next_at(row, column + columns);
      product.rows = m;
      product.columns = columns;
      product.k = depth;
      product.c = c.data + column;
      product.c_stride = c.stride;
      product.scale = c.scale;
      product.add = c.add || row > 0;
      if (band.of == Band::Of::nothing) {
        tiles().multiply(product);
      } else {
        multiply_band(product, band, row, column);
      }
    }
  }
}

void clear(std::int64_t m, std::int64_t n, const MatrixResult& c) {
  if (c.add) return;
  for (std::int64_t row = 0; row < m; ++row) std::fill_n(c.data + row * c.stride, n, 0.0F);
}

}  // namespace

PackedMatrix::PackedMatrix(std::int64_t k, std::int64_t n) : k_(k), n_(n), bytes_(bytes(k, n)) {}

std::size_t PackedMatrix::bytes(std::int64_t k, std::int64_t n) {
  return (k * panels(n) * tiles().panel) * sizeof(float);
}

float* PackedMatrix::place(std::int64_t row, std::int64_t column) const {
  const std::int64_t depth = std::min(kGemmDepth, k_ - row);
  return reinterpret_cast<float*>(bytes_.data()) + row * panels(n_) * tiles().panel + column * depth;
}

const float* PackedMatrix::panel(std::int64_t row, std::int64_t column) const {
  return place(row, column);
}

void PackedMatrix::pack(MatrixView b) {
  for (std::int64_t row = 0; row < k_; row += kGemmDepth) {
    for (std::int64_t column = 0; column < n_; column += tiles().panel) {
      pack_panel(b, row, column, std::min(kGemmDepth, k_ - row), std::min(tiles().panel, n_ - column),
                 place(row, column));
    }
  }
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, MatrixResult c, Band band) {
  if (k == 0) return clear(m, n, c);
  alignas(64) float packed[kGemmDepth * kWidestPanel];
  run(
      m, n, k, a, c, band,
      [&](std::int64_t row, std::int64_t column, std::int64_t depth, std::int64_t columns) {
        pack_panel(b, row, column, depth, columns, packed);
        return packed;
      },
      [](std::int64_t /*row*/, std::int64_t /*column*/) -> const float* { return nullptr; });
}

void gemm(std::int64_t m, MatrixView a, const PackedMatrix& b, MatrixResult c) {
  if (b.rows() == 0) return clear(m, b.columns(), c);
  run(
      m, b.columns(), b.rows(), a, c, {},
      [&](std::int64_t row, std::int64_t column, std::int64_t /*depth*/, std::int64_t /*columns*/) {
        return b.panel(row, column);
      },
      [&](std::int64_t row, std::int64_t column) { return column < b.columns() ? b.panel(row, column) : nullptr; });
}

}  // namespace lockstep::device
