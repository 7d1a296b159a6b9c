// adafactor: Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", ICML 2018, algorithms
// 4 and 5, with the constants of PyTorch's Adafactor. Of a matrix it keeps the mean squares of its gradient's rows and
// of its columns; every weight of several dimensions is one, with a row for each element of the first.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "optim/elementwise.hpp"

namespace lockstep::optim {

/// What is the same for all elements. It is no formula of an ElementwiseOptimizer, so GPUs do not compute it.
struct Adafactor {
  float rate;    // at most 1 / sqrt(t)
  float keep;    // 1 - rate * weight decay, with the rate as it is given
  float weight;  // of the newest squares in their running means
  float floor;   // what an element's mean square is at least taken for
  double epsilon1, epsilon2, clip;

  Adafactor(const Attributes& settings, const UpdateStep& of, bool decays)
      : keep(static_cast<float>(1 - of.learning_rate * weight_decay_of(settings, decays))),
        epsilon1(settings.number("epsilon1")),
        epsilon2(settings.number("epsilon2")),
        clip(settings.number("clip_threshold")) {
    const auto t = static_cast<double>(of.update + 1);
    rate = static_cast<float>(std::min(of.learning_rate, 1 / std::sqrt(t)));
    weight = static_cast<float>(std::pow(t, settings.number("beta2_decay")));
    floor = static_cast<float>(epsilon1 * epsilon1);
  }

  /// The factor of a parameter's step, from its norm and that of the step.
  [[nodiscard]] float ratio(double parameter, double step, std::int64_t elements) const {
    const double root = std::sqrt(static_cast<double>(elements));
    return static_cast<float>(std::max(epsilon2, parameter / root) / std::max(1.0, step / (root * clip)));
  }
};

LOCKSTEP_INLINE float over_root(float g, float square, float floor) {
  return g / std::sqrt(square > floor ? square : floor);
}

LOCKSTEP_VECTORIZED inline void add_squares(const float* g, double* sums, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(g[i]) * static_cast<double>(g[i]);
}
LOCKSTEP_VECTORIZED inline double sum_squares(const float* values, std::int64_t n) {
  return sum_of_squares(n, [&](std::int64_t i) LOCKSTEP_INLINE_LAMBDA { return values[i]; });
}
LOCKSTEP_VECTORIZED inline double sum_squares_of_steps(const float* g, const float* moments, float floor,
                                                       std::int64_t n) {
  return sum_of_squares(n, [&](std::int64_t i) LOCKSTEP_INLINE_LAMBDA { return over_root(g[i], moments[i], floor); });
}
LOCKSTEP_VECTORIZED inline void average_squares(const float* g, float weight, float* moments, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) moments[i] = averaged(moments[i], g[i] * g[i], weight);
}
/// In place. The estimate of an element's mean square is its row's, as a share of their mean, times its column's.
LOCKSTEP_VECTORIZED inline void divide_row(float share, const float* column_moments, float floor, float* g,
                                           std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) g[i] = over_root(g[i], share * column_moments[i], floor);
}
LOCKSTEP_VECTORIZED inline void take_scaled(float factor, float keep, const float* step, float* p, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) p[i] = p[i] * keep - factor * step[i];
}
LOCKSTEP_VECTORIZED inline void take_over_root(float factor, float keep, const float* g, const float* moments,
                                               float floor, float* p, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) p[i] = p[i] * keep - factor * over_root(g[i], moments[i], floor);
}

/// Updates the moments of a gradient [rows, columns], and divides it by the roots of the estimated mean squares.
inline void divide_by_factored_roots(const Adafactor& formula, std::span<float> gradient, std::int64_t rows,
                                     std::int64_t columns, float* row_moments, float* column_moments) {
  std::vector<double> sums(static_cast<std::size_t>(columns));
  double mean = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* const row = gradient.data() + i * columns;
    add_squares(row, sums.data(), columns);
    const auto square = static_cast<float>(sum_squares(row, columns) / static_cast<double>(columns));
    row_moments[i] = averaged(row_moments[i], square, formula.weight);
    mean += static_cast<double>(row_moments[i]);
  }
  for (std::int64_t j = 0; j < columns; ++j) {
    const auto square = static_cast<float>(sums[static_cast<std::size_t>(j)] / static_cast<double>(rows));
    column_moments[j] = averaged(column_moments[j], square, formula.weight);
  }
  const auto divisor = static_cast<float>(std::max(mean / static_cast<double>(rows), formula.epsilon1));
  for (std::int64_t i = 0; i < rows; ++i) {
    divide_row(row_moments[i] / divisor, column_moments, formula.floor, gradient.data() + i * columns, columns);
  }
}

inline MatrixStep adafactor_step(const Attributes& settings, const UpdateStep& step) {
  const auto measure = [](const ParameterRun& run, std::span<float> direction) {
    std::copy(run.gradient.begin(), run.gradient.end(), direction.begin());
  };
  const auto transform = [formula = Adafactor(settings, step, false)](std::span<float> matrix, std::int64_t rows,
                                                                      std::int64_t columns,
                                                                      std::span<float* const> states) {
    divide_by_factored_roots(formula, matrix, rows, columns, states[1], states[2]);
  };
  return {.measure = measure, .transform = transform};
}

inline TrustRatio adafactor_ratio(const Attributes& settings, const UpdateStep& step) {
  const Adafactor formula(settings, step, false);
  const auto measure = [formula](const ParameterRun& run) {
    const std::int64_t n = std::ssize(run.parameter);
    const double parameter = sum_squares(run.parameter.data(), n);
    if (!run.step.empty()) return SquareSums{parameter, sum_squares(run.step.data(), n)};
    average_squares(run.gradient.data(), formula.weight, run.states[0], n);
    return SquareSums{parameter, sum_squares_of_steps(run.gradient.data(), run.states[0], formula.floor, n)};
  };
  const auto ratio = [formula](double parameter, double direction, std::int64_t elements) {
    return formula.ratio(parameter, direction, elements);
  };
  return {.measure = measure, .ratio = ratio, .of_all = true};
}

inline OptimizerDef make_adafactor() {
  OptimizerDef adafactor;
  adafactor.name = "adafactor";
  adafactor.doc = "mean squares by row and column, and steps relative to a parameter's size: little memory";
  adafactor.order = 11;
  adafactor.learning_rate = 0.01;
  adafactor.attributes = {
      {.name = "beta2_decay",
       .kind = AttributeKind::number,
       .doc = "in update t, the newest squares have the weight t to the power of this in their running means",
       .default_value = -0.8,
       .maximum = 0},
      {.name = "clip_threshold",
       .kind = AttributeKind::number,
       .doc = "a parameter's step whose root mean square is larger than this is divided by the excess",
       .default_value = 1.0,
       .minimum = 0,
       .above_minimum = true},
      {.name = "epsilon1",
       .kind = AttributeKind::number,
       .doc = "least root mean square of an element's gradient",
       .default_value = static_cast<double>(std::numeric_limits<float>::epsilon()),
       .minimum = 1e-18},  // a smaller one's square is no normal float
      {.name = "epsilon2",
       .kind = AttributeKind::number,
       .doc = "least root mean square of a parameter, which its step is relative to",
       .default_value = 0.001,
       .minimum = 0},
  };
  add_weight_decay(adafactor.attributes, 0, "this times the rate is the share of a parameter that each step takes off");
  adafactor.states = [](const Attributes& /*settings*/) {
    return std::vector<std::string>{"second_moment", "row_moment", "column_moment"};
  };
  adafactor.state_shape = [](std::size_t state, const Shape& parameter) {
    if (parameter.size() < 2) return state == 0 ? parameter : Shape{0};
    const std::int64_t rows = parameter.front();
    return state == 0 ? Shape{0} : Shape{state == 1 ? rows : elements(parameter) / rows};
  };
  adafactor.every_matrix = true;
  adafactor.matrix_step = adafactor_step;
  adafactor.trust_ratio = adafactor_ratio;
  adafactor.update = [](const Attributes& settings, const UpdateStep& step) -> ParameterUpdate {
    return [decayed = Adafactor(settings, step, true),
            plain = Adafactor(settings, step, false)](const ParameterRun& run) {
      const Adafactor& formula = run.decay ? decayed : plain;
      const std::int64_t n = std::ssize(run.parameter);
      const float factor = formula.rate * run.trust;
      if (!run.step.empty()) return take_scaled(factor, formula.keep, run.step.data(), run.parameter.data(), n);
      take_over_root(factor, formula.keep, run.gradient.data(), run.states[0], formula.floor, run.parameter.data(), n);
    };
  };
  return adafactor;
}

}  // namespace lockstep::optim
