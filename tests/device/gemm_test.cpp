// gemm compared with a sum in double, for sizes around its tiles, panels and blocks, and the loops of each instruction
// set that this machine supports.
#include "device/cpu/gemm.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "device/cpu/gemm_tiles.hpp"
#include "lockstep/random.hpp"

namespace lockstep::device {
namespace {

constexpr float kUntouched = 1234.5F;

std::vector<float> random_floats(std::int64_t n, std::uint64_t stream) {
  RandomStream random(7, stream);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& value : values) value = random.between(-1, 1);
  return values;
}

struct Sizes {
  std::int64_t m, n, k;
};

/// A product with padded strides, and the memory around the result.
class GemmCase {
 public:
  GemmCase(Sizes sizes, bool a_transposed, bool b_transposed)
      : s_(sizes),
        a_stride_((a_transposed ? s_.m : s_.k) + 3),
        b_stride_((b_transposed ? s_.k : s_.n) + 5),
        a_(random_floats(a_stride_ * (a_transposed ? s_.k : s_.m), 1)),
        b_(random_floats(b_stride_ * (b_transposed ? s_.n : s_.k), 2)),
        a_transposed_(a_transposed),
        b_transposed_(b_transposed) {}

  [[nodiscard]] MatrixView a() const { return {a_.data(), a_stride_, a_transposed_}; }
  [[nodiscard]] MatrixView b() const { return {b_.data(), b_stride_, b_transposed_}; }
  [[nodiscard]] std::int64_t c_stride() const { return s_.n + 2; }
  [[nodiscard]] std::vector<float> fresh_c() const {
    return std::vector<float>(static_cast<std::size_t>(s_.m * c_stride()), kUntouched);
  }

  [[nodiscard]] double exact(std::int64_t row, std::int64_t column) const {
    double sum = 0;
    for (std::int64_t i = 0; i < s_.k; ++i) sum += at(a(), row, i) * at(b(), i, column);
    return sum;
  }

  void expect_exact(const std::vector<float>& c, double scale, double before) const {
    for (std::int64_t row = 0; row < s_.m; ++row) {
      for (std::int64_t column = 0; column < c_stride(); ++column) {
        const double got = static_cast<double>(c[static_cast<std::size_t>(row * c_stride() + column)]);
        if (column >= s_.n) {
          ASSERT_EQ(got, static_cast<double>(kUntouched)) << "wrote beside the result";
          continue;
        }
        const double expected = before + scale * exact(row, column);
        ASSERT_NEAR(got, expected, 1e-6 * (std::abs(before) + static_cast<double>(s_.k) + 1)) << row << ", " << column;
      }
    }
  }

 private:
  static double at(const MatrixView& matrix, std::int64_t row, std::int64_t column) {
    const std::int64_t place = matrix.transposed ? column * matrix.stride + row : row * matrix.stride + column;
    return static_cast<double>(matrix.data[place]);
  }

  Sizes s_;
  std::int64_t a_stride_, b_stride_;
  std::vector<float> a_, b_;
  bool a_transposed_, b_transposed_;
};

const std::vector<Sizes> kSizes = {{1, 1, 1},     {8, 48, 16},   {7, 47, 15},   {9, 49, 17},
                                   {64, 65, 128}, {3, 100, 255}, {13, 31, 256}, {5, 33, 257},
                                   {17, 96, 515}, {65, 130, 31}, {0, 5, 3},     {4, 0, 3}};

TEST(Gemm, IsTheProduct) {
  for (const auto& sizes : kSizes) {
    for (int kind = 0; kind < 4; ++kind) {
      SCOPED_TRACE(fmt::format("{} x {} x {}, kind {}", sizes.m, sizes.n, sizes.k, kind));
      const GemmCase product(sizes, kind % 2 == 1, kind / 2 == 1);
      auto c = product.fresh_c();
      gemm(sizes.m, sizes.n, sizes.k, product.a(), product.b(), {c.data(), product.c_stride()});
      product.expect_exact(c, 1, 0);
      c = product.fresh_c();
      gemm(sizes.m, sizes.n, sizes.k, product.a(), product.b(), {c.data(), product.c_stride(), true, 0.5F});
      product.expect_exact(c, 0.5, static_cast<double>(kUntouched));
    }
  }
}

TEST(Gemm, PackedGivesTheSameBits) {
  for (const auto& sizes : kSizes) {
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(fmt::format("{} x {} x {}", sizes.m, sizes.n, sizes.k));
      const GemmCase product(sizes, false, transposed);
      auto plain = product.fresh_c(), packed = product.fresh_c();
      gemm(sizes.m, sizes.n, sizes.k, product.a(), product.b(), {plain.data(), product.c_stride()});
      PackedMatrix b(sizes.k, sizes.n);
      b.pack(product.b());
      gemm(sizes.m, product.a(), b, {packed.data(), product.c_stride()});
      EXPECT_EQ(plain, packed);
    }
  }
}

TEST(Gemm, ARowDoesNotDependOnTheNumberOfRows) {
  const Sizes all{21, 70, 300};
  const GemmCase product(all, false, true);
  auto whole = product.fresh_c();
  gemm(all.m, all.n, all.k, product.a(), product.b(), {whole.data(), product.c_stride()});
  for (std::int64_t first = 0; first < all.m; ++first) {
    for (std::int64_t rows = 1; first + rows <= all.m; rows += 3) {
      auto part = product.fresh_c();
      MatrixView a = product.a();
      a.data += first * a.stride;
      gemm(rows, all.n, all.k, a, product.b(), {part.data() + first * product.c_stride(), product.c_stride()});
      for (std::int64_t i = first * product.c_stride(); i < (first + rows) * product.c_stride(); ++i) {
        ASSERT_EQ(part[static_cast<std::size_t>(i)], whole[static_cast<std::size_t>(i)]) << first << " + " << rows;
      }
    }
  }
}

TEST(Gemm, NothingToAddGivesZero) {
  std::vector<float> c(6, kUntouched);
  gemm(2, 3, 0, {c.data(), 1}, {c.data(), 3}, {c.data(), 3, true});
  EXPECT_EQ(c, std::vector<float>(6, kUntouched));
  gemm(2, 3, 0, {c.data(), 1}, {c.data(), 3}, {c.data(), 3});
  EXPECT_EQ(c, std::vector<float>(6, 0.0F));
  std::fill(c.begin(), c.end(), kUntouched);
  gemm(2, {c.data(), 1}, PackedMatrix(0, 3), {c.data(), 3});
  EXPECT_EQ(c, std::vector<float>(6, 0.0F));
}

/// The skipped part of `a` is 0, as Band says; of `c`, only what is in the band is compared.
TEST(Gemm, ABandIsThePartOfTheProductThatItNames) {
  for (const std::int64_t visible : {-9, 0, 1, 5, 30}) {
    for (const std::int64_t k : {40, 300}) {
      for (const bool transposed : {false, true}) {
        SCOPED_TRACE(fmt::format("visible {}, k {}, transposed {}", visible, k, transposed));
        const std::int64_t m = 37, n = 70, rows = transposed ? k : m, columns = transposed ? m : k;
        auto a = random_floats(rows * columns, 3);
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = std::max<std::int64_t>(0, i + visible); j < columns; ++j)
            a[static_cast<std::size_t>(i * columns + j)] = 0;
        }
        const auto b = random_floats(k * n, 4);
        std::vector<float> whole(static_cast<std::size_t>(m * n), 0.5F), left = whole, result = whole;
        const MatrixView av{a.data(), columns, transposed}, bv{b.data(), n};
        gemm(m, n, k, av, bv, {whole.data(), n, true});
        gemm(m, n, k, av, bv, {left.data(), n, true}, {Band::Of::left, visible});
        EXPECT_EQ(left, whole);
        gemm(m, n, k, av, bv, {result.data(), n, true}, {Band::Of::result, visible});
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < std::min(n, i + visible); ++j) {
            const auto at = static_cast<std::size_t>(i * n + j);
            ASSERT_EQ(result[at], whole[at]) << i << ", " << j;
          }
        }
      }
    }
  }
}

/// One panel by the loops of one instruction set.
void check_tiles(const GemmTiles& tiles) {
  alignas(64) static float packed[40 * kWidestPanel];
  for (std::int64_t columns = 1; columns <= tiles.panel; ++columns) {
    for (const std::int64_t rows : {1, 5, 8, 27}) {
      for (int kind = 0; kind < 4; ++kind) {
        SCOPED_TRACE(fmt::format("{} x {}, kind {}", rows, columns, kind));
        const Sizes sizes{rows, columns, 37};
        const GemmCase product(sizes, kind % 2 == 1, kind / 2 == 1);
        const MatrixView a = product.a(), b = product.b();
        auto c = product.fresh_c();
        tiles.pack({b.data, b.stride, b.transposed, sizes.k, columns}, packed);
        PanelProduct panel;
        panel.a = a.data;
        panel.a_row = a.transposed ? 1 : a.stride;
        panel.a_stride = a.stride;
        panel.a_transposed = a.transposed;
        panel.b = packed;
        panel.rows = rows;
        panel.columns = columns;
        panel.k = sizes.k;
        panel.c = c.data();
        panel.c_stride = product.c_stride();
        tiles.multiply(panel);
        product.expect_exact(c, 1, 0);
        if (!a.transposed) continue;
        std::vector<float> left(static_cast<std::size_t>((rows + tiles.rows) * sizes.k));
        tiles.pack_left(a.data, a.stride, rows, sizes.k, left.data());
        panel.a = left.data();
        panel.a_row = sizes.k;
        panel.a_stride = tiles.rows;
        auto again = product.fresh_c();
        panel.c = again.data();
        tiles.multiply(panel);
        EXPECT_EQ(c, again) << "packed";
      }
    }
  }
}

TEST(GemmTiles, Portable) {
  check_tiles(gemm_tiles_portable());
}

#ifdef __x86_64__
TEST(GemmTiles, Avx2) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "no AVX2 here";
  check_tiles(gemm_tiles_avx2());
}

TEST(GemmTiles, Avx512) {
  if (!__builtin_cpu_supports("x86-64-v4")) GTEST_SKIP() << "no AVX-512 here";
  check_tiles(gemm_tiles_avx512());
}
#endif

}  // namespace
}  // namespace lockstep::device
