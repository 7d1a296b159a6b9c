// Muon: its iteration and its formula in double, and what it makes of singular values.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lockstep/random.hpp"
#include "step/optim/newton_schulz.hpp"
#include "step/optim/registry.hpp"

namespace lockstep::optim {

namespace {

using Matrix = std::vector<double>;

Matrix product(const Matrix& a, const Matrix& b, std::int64_t m, std::int64_t k, std::int64_t n) {
  Matrix c(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t l = 0; l < k; ++l) {
        c[static_cast<std::size_t>(i * n + j)] +=
            a[static_cast<std::size_t>(i * k + l)] * b[static_cast<std::size_t>(l * n + j)];
      }
    }
  }
  return c;
}

Matrix transposed(const Matrix& a, std::int64_t rows, std::int64_t columns) {
  Matrix t(a.size());
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    t[static_cast<std::size_t>(i % columns * rows + i / columns)] = a[static_cast<std::size_t>(i)];
  }
  return t;
}

/// x <- a x + b (x x^T) x + c (x x^T)^2 x, without a transposition for tall ones: it has the same values.
Matrix iterated(Matrix x, std::int64_t rows, std::int64_t columns, int steps) {
  double square = 0;
  for (const double value : x) square += value * value;
  for (double& value : x) value /= std::sqrt(square);
  for (int step = 0; step < steps; ++step) {
    const Matrix s = product(x, transposed(x, rows, columns), rows, columns, rows);
    const Matrix sx = product(s, x, rows, rows, columns), ssx = product(s, sx, rows, rows, columns);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] - 4.7750 * sx[i] + 2.0315 * ssx[i];
  }
  return x;
}

std::vector<float> random_values(std::int64_t count, std::uint64_t stream) {
  RandomStream random(11, stream);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = random.between(-1, 1);
  return values;
}

}  // namespace

TEST(NewtonSchulz, IsTheIterationInDouble) {
  for (const auto& [rows, columns] : {std::pair{7, 11}, {11, 7}, {1, 5}, {5, 1}, {40, 40}, {33, 300}}) {
    std::vector<float> matrix = random_values(rows * columns, 1);
    const Matrix expected = iterated({matrix.begin(), matrix.end()}, rows, columns, 5);
    orthogonalize(matrix, rows, columns, {});
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(matrix[i]), expected[i], 2e-5) << rows << " x " << columns;
    }
  }
}

// The sum of the squares of singular values is that of all elements: of 12, about 12.
TEST(NewtonSchulz, MakesSingularValuesAboutOne) {
  std::vector<float> matrix = random_values(std::int64_t{12} * 90, 2);
  orthogonalize(matrix, 12, 90, {});
  const Matrix x(matrix.begin(), matrix.end());
  const Matrix gram = product(x, transposed(x, 12, 90), 12, 90, 12);
  for (std::size_t i = 0; i < 12; ++i) {
    for (std::size_t j = 0; j < 12; ++j) {
      if (i == j) {
        EXPECT_NEAR(gram[i * 12 + j], 0.9, 0.5);
      } else {
        EXPECT_NEAR(gram[i * 12 + j], 0, 0.3);
      }
    }
  }
}

TEST(NewtonSchulz, LeavesNothingAsItIs) {
  std::vector<float> zeros(12);
  orthogonalize(zeros, 3, 4, {});
  EXPECT_EQ(zeros, std::vector<float>(12));
}

TEST(Muon, OfAMatrix) {
  constexpr std::int64_t kRows = 6, kColumns = 9, kSize = kRows * kColumns;
  OptimizerRegistry registry;
  add_built_in(registry);
  const OptimizerDef& muon = registry.at("muon");
  for (const bool nesterov : {false, true}) {
    const Attributes settings = complete(
        muon.attributes, Attributes({{"nesterov", nesterov}, {"momentum", 0.8}, {"weight_decay", 0.3}}), "muon");
    std::vector<float> p = random_values(kSize, 3), m(kSize), v(kSize), direction(kSize);
    Matrix expected(p.begin(), p.end()), mean(kSize);
    for (int step = 0; step < 4; ++step) {
      const std::vector<float> g = random_values(kSize, 4 + static_cast<std::uint64_t>(step));
      const UpdateStep of{.learning_rate = 0.02, .update = step};
      const std::vector<float*> states = {m.data(), v.data()};
      ParameterRun run{.parameter = p, .gradient = g, .states = states, .decay = true};
      const MatrixStep matrix = muon.matrix_step(settings, of);
      matrix.measure(run, direction);
      matrix.transform(direction, kRows, kColumns, {});
      run.step = direction;
      muon.update(settings, of)(run);

      Matrix raw(kSize);
      for (std::size_t i = 0; i < raw.size(); ++i) {
        mean[i] = 0.8 * mean[i] + 0.2 * static_cast<double>(g[i]);
        raw[i] = nesterov ? 0.2 * static_cast<double>(g[i]) + 0.8 * mean[i] : mean[i];
      }
      const Matrix made = iterated(raw, kRows, kColumns, 5);
      for (std::size_t i = 0; i < raw.size(); ++i) {
        expected[i] = expected[i] * (1 - 0.02 * 0.3) - 0.02 * 0.2 * 3 * made[i];  // 3: the root of the larger side
      }
    }
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(static_cast<double>(p[i]), expected[i], 5e-6);
    EXPECT_EQ(v, std::vector<float>(kSize));
  }
}

TEST(Muon, OfAllElseIsAdamW) {
  OptimizerRegistry registry;
  add_built_in(registry);
  std::vector<std::vector<float>> made;
  for (const char* name : {"muon", "adamw"}) {
    const OptimizerDef& def = registry.at(name);
    const Attributes settings = complete(def.attributes, Attributes({{"weight_decay", 0.3}}), name);
    std::vector<float> p = random_values(37, 3), m(37), v(37);
    const std::vector<float*> states = {m.data(), v.data()};
    for (int step = 0; step < 3; ++step) {
      const std::vector<float> g = random_values(37, 4);
      def.update(settings, {.learning_rate = 0.02, .update = step})(
          {.parameter = p, .gradient = g, .states = states, .decay = true});
    }
    made.push_back(p);
  }
  EXPECT_EQ(made[0], made[1]);
}

}  // namespace lockstep::optim
