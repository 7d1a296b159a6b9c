// Adafactor in double: as PyTorch has it, and as the paper; and the shapes of its states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/random.hpp"
#include "step/optim/registry.hpp"

namespace lockstep::optim {

namespace {

constexpr std::size_t kRows = 6, kColumns = 9;

struct AdafactorSettings {
  double rate = 0.01, decay = 0, clip = 1, epsilon1 = 1e-15, epsilon2 = 1e-3, beta2_decay = -0.8;
};

struct Defined {
  OptimizerRegistry registry;
  const OptimizerDef* def;
  Attributes settings;
  explicit Defined(const AdafactorSettings& given) {
    add_built_in(registry);
    def = &registry.at("adafactor");
    settings = complete(def->attributes,
                        Attributes({{"beta2_decay", given.beta2_decay},
                                    {"clip_threshold", given.clip},
                                    {"epsilon1", given.epsilon1},
                                    {"epsilon2", given.epsilon2},
                                    {"weight_decay", given.decay}}),
                        "adafactor");
  }
};

std::vector<float> values_up_to(std::size_t count, std::uint64_t stream, float most = 1) {
  RandomStream random(13, stream);
  std::vector<float> values(count);
  for (float& value : values) value = random.between(-most, most);
  return values;
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

/// A parameter in double, [kRows, kColumns] or a vector, as PyTorch's Adafactor updates it.
struct AsPyTorch {
  const AdafactorSettings& of;
  std::vector<double> p, rows, columns, moments;

  AsPyTorch(const AdafactorSettings& settings, const std::vector<float>& begin, bool is_matrix)
      : of(settings), p(begin.begin(), begin.end()), moments(is_matrix ? 0 : p.size()) {
    if (!is_matrix) return;
    rows.resize(kRows);
    columns.resize(kColumns);
  }

  void update(const std::vector<float>& gradient, int t) {
    const std::vector<double> g(gradient.begin(), gradient.end());
    const double weight = std::pow(t, of.beta2_decay);
    std::vector<double> v = rows.empty() ? unfactored(g, weight) : factored(g, weight), u(p.size());
    for (std::size_t i = 0; i < p.size(); ++i) u[i] = g[i] / std::sqrt(std::max(v[i], of.epsilon1 * of.epsilon1));
    const double step = std::max(of.epsilon2, root_mean_square(p)) * std::min(of.rate, 1 / std::sqrt(t));
    const double clipped = step / std::max(1.0, root_mean_square(u) / of.clip);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = p[i] * (1 - of.rate * of.decay) - clipped * u[i];
  }

 private:
  std::vector<double> unfactored(const std::vector<double>& g, double weight) {
    for (std::size_t i = 0; i < g.size(); ++i) moments[i] += weight * (g[i] * g[i] - moments[i]);
    return moments;
  }
  std::vector<double> factored(const std::vector<double>& g, double weight) {
    std::vector<double> of_rows(kRows), of_columns(kColumns), v(g.size());
    for (std::size_t i = 0; i < g.size(); ++i) {
      of_rows[i / kColumns] += g[i] * g[i] / kColumns;
      of_columns[i % kColumns] += g[i] * g[i] / kRows;
    }
    for (std::size_t i = 0; i < kRows; ++i) rows[i] += weight * (of_rows[i] - rows[i]);
    for (std::size_t j = 0; j < kColumns; ++j) columns[j] += weight * (of_columns[j] - columns[j]);
    const double mean = std::accumulate(rows.begin(), rows.end(), 0.0) / kRows;
    for (std::size_t i = 0; i < g.size(); ++i) {
      v[i] = rows[i / kColumns] * columns[i % kColumns] / std::max(mean, of.epsilon1);
    }
    return v;
  }
};

/// Algorithms 4 and 5 of the paper as they stand there, in double: sums of rows and columns instead of means.
struct AsThePaper {
  const AdafactorSettings& of;
  std::vector<double> x, r, c, v;

  AsThePaper(const AdafactorSettings& settings, const std::vector<float>& begin, bool is_matrix)
      : of(settings), x(begin.begin(), begin.end()), v(is_matrix ? 0 : x.size()) {
    if (!is_matrix) return;
    r.resize(kRows);
    c.resize(kColumns);
  }

  void update(const std::vector<float>& g, int t) {
    constexpr double kEpsilon1 = 1e-30;
    const double rho = std::min(1e-2, 1 / std::sqrt(t)), alpha = std::max(1e-3, root_mean_square(x)) * rho;
    const double beta2 = 1 - std::pow(t, -0.8);
    for (auto* sums : {&r, &c, &v}) {
      for (double& sum : *sums) sum *= beta2;
    }
    std::vector<double> u(g.begin(), g.end());
    for (std::size_t i = 0; i < u.size(); ++i) {
      const double square = (1 - beta2) * (u[i] * u[i] + kEpsilon1);
      if (r.empty()) {
        v[i] += square;
      } else {
        r[i / kColumns] += square;
        c[i % kColumns] += square;
      }
    }
    const double all = std::accumulate(r.begin(), r.end(), 0.0);
    for (std::size_t i = 0; i < u.size(); ++i) {
      u[i] /= std::sqrt(r.empty() ? v[i] : r[i / kColumns] * c[i % kColumns] / all);
    }
    const double clipped = alpha / std::max(1.0, root_mean_square(u) / of.clip);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= clipped * u[i];
  }
};

/// Five updates, the first and every eighth after it, with gradients of up to `most`, some of them a thousandth.
template <class Expected>
std::vector<float> after_updates(const AdafactorSettings& settings, bool is_matrix, float most, Expected& expected,
                                 std::vector<float> p) {
  const Defined chosen(settings);
  std::vector<float> moments(p.size()), rows(kRows), columns(kColumns);
  const std::vector<float*> states = is_matrix ? std::vector<float*>{nullptr, rows.data(), columns.data()}
                                               : std::vector<float*>{moments.data(), nullptr, nullptr};
  for (int step = 0; step < 5; ++step) {
    std::vector<float> g = values_up_to(p.size(), 2 + static_cast<std::uint64_t>(step), most);
    for (std::size_t i = 0; i < 2 * kColumns; ++i) g[i] *= 1e-3F;
    const UpdateStep of{.learning_rate = settings.rate, .update = 8 * step};
    std::vector<float> direction(p.size());
    ParameterRun run{.parameter = p, .gradient = g, .states = states, .decay = true};
    if (is_matrix) {
      const MatrixStep matrix = chosen.def->matrix_step(chosen.settings, of);
      matrix.measure(run, direction);
      matrix.transform(direction, kRows, kColumns, states);
      run.step = direction;
    }
    const TrustRatio trust = chosen.def->trust_ratio(chosen.settings, of);
    EXPECT_TRUE(trust.of_all);
    const SquareSums sums = trust.measure(run);
    run.trust = trust.ratio(std::sqrt(sums.parameter), std::sqrt(sums.direction), std::ssize(p));
    chosen.def->update(chosen.settings, of)(run);
    expected.update(g, 8 * step + 1);
  }
  return p;
}

}  // namespace

// The rate is that of the job in the first two updates only. Parameters, or gradients, of the smaller size are below
// the least root mean squares.
TEST(Adafactor, IsPyTorchs) {
  const AdafactorSettings settings{
      .rate = 0.3, .decay = 0.2, .clip = 0.8, .epsilon1 = 0.05, .epsilon2 = 0.4, .beta2_decay = -0.7};
  for (const bool is_matrix : {false, true}) {
    for (const auto& [size, most] : {std::pair{1.0F, 1.0F}, {0.1F, 1.0F}, {1.0F, 0.3F}}) {
      const std::vector<float> begin = values_up_to(kRows * kColumns, 1, size);
      AsPyTorch expected(settings, begin, is_matrix);
      const std::vector<float> p = after_updates(settings, is_matrix, most, expected, begin);
      for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(static_cast<double>(p[i]), expected.p[i], 2e-6) << i;
    }
  }
}

// Its rate is the default, and its epsilon1 added to each square, where PyTorch's is the least mean square.
TEST(Adafactor, IsThePapers) {
  const AdafactorSettings settings;
  for (const bool is_matrix : {false, true}) {
    const std::vector<float> begin = values_up_to(kRows * kColumns, 1);
    AsThePaper expected(settings, begin, is_matrix);
    const std::vector<float> p = after_updates(settings, is_matrix, 1, expected, begin);
    for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(static_cast<double>(p[i]), expected.x[i], 5e-7) << i;
    EXPECT_GT(std::abs(static_cast<double>(p[20] - begin[20])), 1e-3);
  }
}

// What has no gradient stays: no square is 0.
TEST(Adafactor, LeavesWhatHasNoGradient) {
  AdafactorSettings settings;
  settings.epsilon1 = 1e-18;
  struct Nothing {
    void update(const std::vector<float>& /*gradient*/, int /*t*/) {}
  } nothing;
  for (const bool is_matrix : {false, true}) {
    const std::vector<float> begin = values_up_to(kRows * kColumns, 1);
    EXPECT_EQ(after_updates(settings, is_matrix, 0, nothing, begin), begin);
  }
}

TEST(Adafactor, KeepsRowsAndColumnsOfMatrices) {
  const Defined chosen{AdafactorSettings()};
  EXPECT_EQ(chosen.def->states(chosen.settings),
            (std::vector<std::string>{"second_moment", "row_moment", "column_moment"}));
  const auto shapes = [&](const Shape& parameter) {
    std::vector<Shape> of;
    for (std::size_t s = 0; s < 3; ++s) of.push_back(chosen.def->state_shape(s, parameter));
    return of;
  };
  EXPECT_EQ(shapes({7}), (std::vector<Shape>{{7}, {0}, {0}}));
  EXPECT_EQ(shapes({7, 5}), (std::vector<Shape>{{0}, {7}, {5}}));
  EXPECT_EQ(shapes({7, 5, 3, 2}), (std::vector<Shape>{{0}, {7}, {30}}));
}

}  // namespace lockstep::optim
