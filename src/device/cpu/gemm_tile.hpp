// gemm's loops over one panel, for an `Isa` that defines a vector and its multiply-add. Included by one file for each
// instruction set, each built with its own flags: everything is in an unnamed namespace, and nothing is included that
// could be shared with files built with other flags.
//
// A tile is Rows x Vectors registers of sums; for each i it reads one row of the panel and Rows elements of a. A
// weight's panels do not fit into the second-level cache, so each tile also prefetches its part of the next panel.
#pragma once

#include <cstdint>
#include <cstring>

#include "device/cpu/gemm_tiles.hpp"

#define LOCKSTEP_TILE inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are only passed to inlined functions

namespace lockstep::device {

namespace {

template <class Isa>
struct Tiles {
  using Vector = typename Isa::Vector;
  static constexpr std::int64_t kLanes = sizeof(Vector) / sizeof(float);
  static constexpr int kRows = Isa::kRows, kVectors = Isa::kVectors;
  static constexpr std::int64_t kPanel = kLanes * kVectors;

  static LOCKSTEP_TILE Vector load(const float* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
  }
  static LOCKSTEP_TILE void store(float* to, const Vector& vector) { std::memcpy(to, &vector, sizeof vector); }

  static LOCKSTEP_TILE Vector load_part(const float* from, std::int64_t count) {
    Vector vector = {};
    std::memcpy(&vector, from, count * sizeof(float));
    return vector;
  }

  static LOCKSTEP_TILE void finish(const PanelProduct& p, Vector sum, float* c) {
    sum *= p.scale;
    if (p.add) sum = load(c) + sum;
    store(c, sum);
  }
  static LOCKSTEP_TILE void finish_part(const PanelProduct& p, Vector sum, float* c, std::int64_t count) {
    sum *= p.scale;
    if (p.add) sum = load_part(c, count) + sum;
    std::memcpy(c, &sum, count * sizeof(float));
  }

  /// What a tile prefetches in each round: all rounds of all tiles together fetch the next panel once.
  struct Ahead {
    const char* at;
    std::int64_t stride;
    explicit Ahead(const PanelProduct& p)
        : at(reinterpret_cast<const char*>(p.next_b == nullptr ? p.b : p.next_b)),
          stride(p.next_b == nullptr ? 0 : kPanel * kBytes * kRows / (p.rows < kRows ? kRows : p.rows)) {}

   private:
    static constexpr std::int64_t kBytes = sizeof(float);
  };

  template <int Rows, int Vectors, bool Transposed>
  static void tile(const PanelProduct& p, std::int64_t row, Ahead& ahead) {
    Vector sums[Rows][Vectors] = {};
    const float* a = p.a + row * p.a_row;
    const float* b = p.b;
    const char* fetch = ahead.at;
    for (std::int64_t i = 0; i < p.k; ++i) {
      __builtin_prefetch(fetch, 0, 2);
      fetch += ahead.stride;
      Vector right[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) right[v] = load(b + v * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const Vector left = Isa::all(Transposed ? a[i * p.a_stride + r] : a[r * p.a_stride + i]);
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) sums[r][v] = Isa::multiply_add(left, right[v], sums[r][v]);
      }
      b += kPanel;
    }
    ahead.at = fetch;
    const std::int64_t last = p.columns - (Vectors - 1) * kLanes;
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      float* c = p.c + (row + r) * p.c_stride;
#pragma GCC unroll 4
      for (int v = 0; v + 1 < Vectors; ++v) finish(p, sums[r][v], c + v * kLanes);
      if (last == kLanes) {
        finish(p, sums[r][Vectors - 1], c + (Vectors - 1) * kLanes);
      } else {
        finish_part(p, sums[r][Vectors - 1], c + (Vectors - 1) * kLanes, last);
      }
    }
  }

  /// The remaining rows, which do not fill a tile.
  template <int Rows, int Vectors, bool Transposed>
  static void last_rows(const PanelProduct& p, std::int64_t row, Ahead& ahead) {
    if constexpr (Rows > 0) {
      if (p.rows - row == Rows) {
        tile<Rows, Vectors, Transposed>(p, row, ahead);
      } else {
        last_rows<Rows - 1, Vectors, Transposed>(p, row, ahead);
      }
    }
  }

  template <int Vectors, bool Transposed>
  static void all_rows(const PanelProduct& p) {
    std::int64_t row = 0;
    Ahead ahead(p);
    for (; row + kRows <= p.rows; row += kRows) tile<kRows, Vectors, Transposed>(p, row, ahead);
    last_rows<kRows - 1, Vectors, Transposed>(p, row, ahead);
  }

  template <int Vectors = kVectors>
  static void multiply(const PanelProduct& p) {
    if constexpr (Vectors > 1) {
      if (p.columns <= (Vectors - 1) * kLanes) {
        multiply<Vectors - 1>(p);
        return;
      }
    }
    if (p.a_transposed) {
      all_rows<Vectors, true>(p);
    } else {
      all_rows<Vectors, false>(p);
    }
  }

  static void copy(const PanelSource& s, float* to) {
    for (std::int64_t i = 0; i < s.k; ++i, to += kPanel) {
      const float* from = s.b + i * s.b_stride;
      std::int64_t column = 0;
      for (; column + kLanes <= s.columns; column += kLanes) store(to + column, load(from + column));
      if (column == kPanel) continue;
      store(to + column, load_part(from + column, s.columns - column));
      for (column += kLanes; column < kPanel; column += kLanes) store(to + column, Vector{});
    }
  }

  /// Transposes kLanes x kLanes in registers: swaps blocks of half the size, then blocks within them.
  template <int Half = kLanes / 2>
  static LOCKSTEP_TILE void transpose(Vector (&rows)[kLanes]) {
    if constexpr (Half > 0) {
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) {
        if ((r & Half) == 0) Isa::template exchange<Half>(rows[r], rows[r + Half]);
      }
      transpose<Half / 2>(rows);
    }
  }

  static void transpose_block(const PanelSource& s, std::int64_t i, std::int64_t column, float* to) {
    const std::int64_t depth = s.k - i < kLanes ? s.k - i : kLanes;
    Vector rows[kLanes];
    const float* from = s.b + column * s.b_stride + i;
    if (depth == kLanes && column + kLanes <= s.columns) {
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) rows[r] = load(from + r * s.b_stride);
    } else {
      for (int r = 0; r < kLanes; ++r) {
        rows[r] = column + r < s.columns ? load_part(from + r * s.b_stride, depth) : Vector{};
      }
    }
    transpose(rows);
    if (depth == kLanes) {
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) store(to + r * kPanel, rows[r]);
    } else {
      for (int r = 0; r < depth; ++r) store(to + r * kPanel, rows[r]);
    }
  }

  static void pack(const PanelSource& s, float* to) {
    if (!s.b_transposed) {
      copy(s, to);
      return;
    }
    for (std::int64_t column = 0; column < kPanel; column += kLanes) {
      for (std::int64_t i = 0; i < s.k; i += kLanes) transpose_block(s, i, column, to + i * kPanel + column);
    }
  }

  static void pack_left(const float* a, std::int64_t stride, std::int64_t rows, std::int64_t k, float* to) {
    for (std::int64_t row = 0; row < rows; row += kRows, to += k * kRows) {
      const std::int64_t count = rows - row < kRows ? rows - row : kRows;
      const float* from = a + row;
      for (std::int64_t i = 0; i < k; ++i, from += stride) {
        if (count == kRows) {
          std::memcpy(to + i * kRows, from, kRows * sizeof(float));
        } else {
          std::memcpy(to + i * kRows, from, count * sizeof(float));
        }
      }
    }
  }

  static GemmTiles get() {
    static_assert(kPanel <= kWidestPanel);
    return {kRows, kPanel, [](const PanelProduct& p) { multiply(p); }, pack, pack_left};
  }
};

}  // namespace

}  // namespace lockstep::device
