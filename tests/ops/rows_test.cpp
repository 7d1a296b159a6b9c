// Sums over rows: both the CPU's and the GPU's over its whole grid follow the one order of device/row_blocks.hpp, which
// is implemented a second time here.
#include "ops/rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/low_precision.hpp"
#include "device/gpu/elements.hpp"
#include "lockstep/random.hpp"
#include "ops/rows_grid.hpp"

namespace lockstep::ops {

namespace {

using device::HostGrid;
using Int = std::int64_t;
using Floats = std::vector<float>;

/// One row, one block, several, not a multiple of a block; two levels and three; columns that are not a multiple of a
/// warp.
struct Size {
  Int rows, columns;
};
constexpr Size kSizes[] = {{0, 5},   {1, 3},    {63, 33},  {64, 16},   {65, 37},  {128, 1},
                           {133, 7}, {4096, 3}, {4097, 5}, {5000, 50}, {8192, 2}, {262'200, 1}};

Floats made_up(std::size_t n, std::uint64_t seed) {
  RandomStream random(seed, 0);
  Floats values(n);
  for (float& value : values) value = random.between(-1, 1);
  return values;
}

/// 64 rows at a time, until one is left.
float sum_as_stated(Floats terms) {
  do {
    Floats sums;
    for (std::size_t first = 0; first == 0 || first < terms.size(); first += 64) {
      float sum = 0;
      for (std::size_t i = first; i < std::min(first + 64, terms.size()); ++i) sum += terms[i];
      sums.push_back(sum);
    }
    terms = sums;
  } while (terms.size() > 1);
  return terms[0];
}

/// By columns; term(row, column).
template <class Term>
Floats expected_sums(const Size& size, const Term& term) {
  Floats sums;
  for (Int column = 0; column < size.columns; ++column) {
    Floats terms;
    for (Int row = 0; row < size.rows; ++row) terms.push_back(term(row, column));
    sums.push_back(sum_as_stated(terms));
  }
  return sums;
}

/// sum(total, scratch), in memory that held other values before.
template <class Sum>
Floats sums_of(const Size& size, const Sum& sum) {
  Floats total(static_cast<std::size_t>(size.columns), 7);
  Floats scratch(device::row_sums_bytes(size.rows, size.columns) / sizeof(float) + 1, 7);
  sum(total.data(), scratch.data());
  EXPECT_EQ(scratch.back(), 7) << "wrote behind its scratch";
  return total;
}

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST(RowSums, OfRowsHaveTheOrderThatIsStated) {
  for (const Size& size : kSizes) {
    const auto x = made_up(static_cast<std::size_t>(size.rows * size.columns), 1);
    const auto expected = expected_sums(size, [&](Int row, Int column) { return x[row * size.columns + column]; });
    const auto on_cpu = sums_of(
        size, [&](float* total, float* scratch) { sum_rows(x.data(), size.rows, size.columns, total, scratch); });
    const auto on_grid = sums_of(size, [&](float* total, float* scratch) {
      launch_row_sums<HostGrid>(nullptr, device::RowElements<float>{x.data(), size.columns}, size.rows, size.columns,
                                total, scratch);
    });
    EXPECT_TRUE(same_bits(on_cpu, expected)) << size.rows << " rows of " << size.columns << " on the CPU";
    EXPECT_TRUE(same_bits(on_grid, expected)) << size.rows << " rows of " << size.columns << " on a grid";
  }
}

TEST(RowSums, OfLowPrecisionRowsAreThoseOfTheirValues) {
  for (const DType type : {DType::bf16, DType::f16}) {
    device::with_low_precision(type, [&]<class T>(T /*element*/) {
      const Size size{133, 37};
      const auto values = made_up(static_cast<std::size_t>(size.rows * size.columns), 2);
      std::vector<T> x(values.size());
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = values[i];
      const auto expected =
          expected_sums(size, [&](Int row, Int column) -> float { return x[row * size.columns + column]; });
      const auto found = sums_of(size, [&](float* total, float* scratch) {
        launch_row_sums<HostGrid>(nullptr, device::RowElements<T>{x.data(), size.columns}, size.rows, size.columns,
                                  total, scratch);
      });
      EXPECT_TRUE(same_bits(found, expected)) << name_of(type);
    });
  }
}

TEST(RowSums, OfGradientsOfScalesHaveTheOrderThatIsStated) {
  for (const Size& size : kSizes) {
    const auto n = static_cast<std::size_t>(size.rows * size.columns);
    const auto x = made_up(n, 3), dy = made_up(n, 4), means = made_up(static_cast<std::size_t>(size.rows), 5),
               scales = made_up(static_cast<std::size_t>(size.rows), 6);
    for (const float* mean : {means.data(), static_cast<const float*>(nullptr)}) {
      const auto expected = expected_sums(size, [&](Int row, Int column) {
        const auto at = static_cast<std::size_t>(row * size.columns + column);
        const float centered = mean == nullptr ? x[at] : x[at] - mean[row];
        return dy[at] * (centered * scales[static_cast<std::size_t>(row)]);
      });
      const NormedRows rows{x.data(), dy.data(), mean, scales.data(), size.rows, size.columns};
      const auto on_cpu =
          sums_of(size, [&](float* total, float* scratch) { sum_scale_gradients(rows, total, scratch); });
      const auto on_grid = sums_of(size, [&](float* total, float* scratch) {
        const auto launch = [&](const auto& gradients) {
          launch_row_sums<HostGrid>(nullptr, gradients, size.rows, size.columns, total, scratch);
        };
        if (mean != nullptr) {
          launch(ScaleGradients<float, true>{x.data(), dy.data(), mean, scales.data(), size.columns});
        } else {
          launch(ScaleGradients<float, false>{x.data(), dy.data(), mean, scales.data(), size.columns});
        }
      });
      EXPECT_TRUE(same_bits(on_cpu, expected)) << size.rows << " rows of " << size.columns << " on the CPU";
      EXPECT_TRUE(same_bits(on_grid, expected)) << size.rows << " rows of " << size.columns << " on a grid";
    }
  }
}

}  // namespace lockstep::ops
