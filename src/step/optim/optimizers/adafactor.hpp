// adafactor: Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", ICML 2018, algorithms
// 4 and 5, with the constants of PyTorch's Adafactor. Of a matrix it keeps the mean squares of its gradient's rows and
// of its columns; every weight of several dimensions is one, with a row for each element of the first.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/round_up.hpp"
#include "step/optim/elementwise.hpp"

namespace lockstep::optim {

/// What is the same for all elements, on CPUs and GPUs (adafactor_kernels.hpp).
struct Adafactor {
  float rate;    // at most 1 / sqrt(t)
  float keep;    // 1 - rate * weight decay, with the rate as it is given
  float weight;  // of the newest squares in their running means
  float floor;   // what an element's mean square is at least taken for
  double epsilon1, epsilon2, clip;

  Adafactor(const Attributes& settings, const UpdateStep& of, bool decays)
      : keep(1 - of.learning_rate * weight_decay_of(settings, decays)),
        epsilon1(settings.number("epsilon1")),
        epsilon2(settings.number("epsilon2")),
        clip(settings.number("clip_threshold")) {
    const double t = of.update + 1;
    rate = std::min(of.learning_rate, 1 / std::sqrt(t));
    weight = std::pow(t, settings.number("beta2_decay"));
    floor = epsilon1 * epsilon1;
  }

  /// A moment that has taken one more mean of squares: of `count` of them, with this sum.
  LOCKSTEP_HOST_DEVICE float moment(float old, double sum, std::int64_t count) const {
    return averaged(old, sum / count, weight);
  }
  /// What row moments are divided by, from their mean.
  LOCKSTEP_HOST_DEVICE float divisor(float mean) const {
    const float least = epsilon1;
    return mean > least ? mean : least;
  }
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float over_root(float g, float square) const {
    return g / std::sqrt(square > floor ? square : floor);
  }
  /// The factor of a parameter's step, from its norm and that of the step.
  LOCKSTEP_HOST_DEVICE float ratio(double parameter, double step, std::int64_t elements) const {
    const double root = std::sqrt(static_cast<double>(elements)), size = parameter / root,
                 excess = step / (root * clip);
    return (size > epsilon2 ? size : epsilon2) / (excess > 1 ? excess : 1);
  }
};

// Orders of sums, on CPUs and GPUs, where a group of kFactoredLanes threads moves kFactoredPack floats by thread at
// once. A matrix is cut into tiles of kFactoredTile rows and columns. A row's squares in a tile are added in fp32:
// those of each four neighbours, and then what 16 lanes have by halves. A row's tiles are added in double, from the
// first to the last; so are the rows of a column in a tile, and then the tiles of a column.

inline constexpr std::int64_t kFactoredLanes = 16, kFactoredPack = 4, kFactoredTile = kFactoredLanes * kFactoredPack;

/// The sums of all tiles' rows and columns.
constexpr std::int64_t sums_of_tiles(std::int64_t rows, std::int64_t columns) {
  return divide_up(rows, kFactoredTile) * columns + divide_up(columns, kFactoredTile) * rows;
}

template <class T>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE T sum_of_pack(const T* values) {
  return (values[0] + values[1]) + (values[2] + values[3]);
}

/// As device::HostGroup::sum() does.
LOCKSTEP_INLINE float sum_of_factored_lanes(float* lanes) {
  for (std::int64_t distance = kFactoredLanes / 2; distance > 0; distance /= 2) {
    for (std::int64_t lane = 0; lane < distance; ++lane) lanes[lane] += lanes[lane + distance];
  }
  return lanes[0];
}

/// Squares of a chunk, in double: element i is added to lane i % kFactoredTile; then those of each four neighbours are
/// added, and these in order.
template <class Value>
LOCKSTEP_INLINE double packed_sum_of_squares(std::int64_t n, const Value& value) {
  double lanes[kFactoredTile] = {};
  const auto add = [&](std::int64_t i, std::int64_t lane) LOCKSTEP_INLINE_LAMBDA {
    const auto one = static_cast<double>(value(i));
    lanes[lane] += one * one;
  };
  std::int64_t i = 0;
  for (; i + kFactoredTile <= n; i += kFactoredTile) {
    for (std::int64_t lane = 0; lane < kFactoredTile; ++lane) add(i + lane, lane);
  }
  for (std::int64_t lane = 0; i < n; ++i, ++lane) add(i, lane);
  double sum = 0;
  for (std::int64_t lane = 0; lane < kFactoredTile; lane += kFactoredPack) sum += sum_of_pack(lanes + lane);
  return sum;
}

/// Adds a row's squares to the columns' sums, and returns their sum.
LOCKSTEP_VECTORIZED inline double add_row_of_squares(const float* g, double* column_sums, std::int64_t columns) {
  double sum = 0;
  for (std::int64_t first = 0; first < columns; first += kFactoredTile) {
    float squares[kFactoredTile] = {}, lanes[kFactoredLanes];
    const std::int64_t count = std::min(kFactoredTile, columns - first);
    for (std::int64_t j = 0; j < count; ++j) squares[j] = g[first + j] * g[first + j];
    for (std::int64_t j = 0; j < count; ++j) column_sums[first + j] += squares[j];
    for (std::int64_t lane = 0; lane < kFactoredLanes; ++lane) {
      lanes[lane] = sum_of_pack(squares + lane * kFactoredPack);
    }
    sum += sum_of_factored_lanes(lanes);
  }
  return sum;
}
LOCKSTEP_VECTORIZED inline void add_doubles(const double* values, double* sums, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += values[i];
}
LOCKSTEP_VECTORIZED inline double sum_squares(const float* values, std::int64_t n) {
  return packed_sum_of_squares(n, [&](std::int64_t i) LOCKSTEP_INLINE_LAMBDA { return values[i]; });
}
LOCKSTEP_VECTORIZED inline double sum_squares_of_steps(Adafactor formula, const float* g, const float* moments,
                                                       std::int64_t n) {
  return packed_sum_of_squares(
      n, [&](std::int64_t i) LOCKSTEP_INLINE_LAMBDA { return formula.over_root(g[i], moments[i]); });
}
LOCKSTEP_VECTORIZED inline void average_squares(const float* g, float weight, float* moments, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) moments[i] = averaged(moments[i], g[i] * g[i], weight);
}
/// In place. The estimate of an element's mean square is its row's, as a share of their mean, times its column's.
LOCKSTEP_VECTORIZED inline void divide_row(Adafactor formula, float share, const float* column_moments, float* g,
                                           std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) g[i] = formula.over_root(g[i], share * column_moments[i]);
}
LOCKSTEP_VECTORIZED inline void take_scaled(float factor, float keep, const float* step, float* p, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) p[i] = p[i] * keep - factor * step[i];
}
LOCKSTEP_VECTORIZED inline void take_over_root(Adafactor formula, float factor, const float* g, const float* moments,
                                               float* p, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) p[i] = p[i] * formula.keep - factor * formula.over_root(g[i], moments[i]);
}

/// Element i is added to lane i % kFactoredLanes, in double.
inline float mean_of_rows(const float* row_moments, std::int64_t rows) {
  double sums[kFactoredLanes] = {};
  float lanes[kFactoredLanes];
  for (std::int64_t i = 0; i < rows; ++i) sums[i % kFactoredLanes] += row_moments[i];
  for (std::int64_t lane = 0; lane < kFactoredLanes; ++lane) {
    lanes[lane] = sums[lane] / rows;
  }
  return sum_of_factored_lanes(lanes);
}

/// Updates the moments of a gradient [rows, columns], and divides it by the roots of the estimated mean squares.
inline void divide_by_factored_roots(const Adafactor& formula, std::span<float> gradient, std::int64_t rows,
                                     std::int64_t columns, float* row_moments, float* column_moments) {
  std::vector<double> sums(columns), of_tile(sums.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    if (i % kFactoredTile == 0) std::fill(of_tile.begin(), of_tile.end(), 0.0);
    const double sum = add_row_of_squares(gradient.data() + i * columns, of_tile.data(), columns);
    row_moments[i] = formula.moment(row_moments[i], sum, columns);
    if ((i + 1) % kFactoredTile == 0 || i + 1 == rows) add_doubles(of_tile.data(), sums.data(), columns);
  }
  for (std::int64_t j = 0; j < columns; ++j) {
    column_moments[j] = formula.moment(column_moments[j], sums[j], rows);
  }
  const float divisor = formula.divisor(mean_of_rows(row_moments, rows));
  for (std::int64_t i = 0; i < rows; ++i) {
    divide_row(formula, row_moments[i] / divisor, column_moments, gradient.data() + i * columns, columns);
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
    return SquareSums{parameter, sum_squares_of_steps(formula, run.gradient.data(), run.states[0], n)};
  };
  const auto ratio = [formula](double parameter, double direction, std::int64_t elements) {
    return formula.ratio(parameter, direction, elements);
  };
  return {.measure = measure, .ratio = ratio, .of_all = true};
}

/// GPUs compute it by kernels of its own.
struct AdafactorOptimizer : OptimizerDef {
  using OnGpus = Adafactor;
};

inline AdafactorOptimizer make_adafactor() {
  AdafactorOptimizer adafactor;
  adafactor.name = "adafactor";
  adafactor.doc = "factored mean squares, relative steps: little memory";
  adafactor.order = 11;
  adafactor.learning_rate = 0.01;
  adafactor.attributes = {
      {.name = "beta2_decay",
       .kind = AttributeKind::number,
       .doc = "in update t, new squares weigh t to the power of this",
       .default_value = -0.8,
       .maximum = 0},
      {.name = "clip_threshold",
       .kind = AttributeKind::number,
       .doc = "largest root mean square of a parameter's step",
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
       .doc = "least root mean square of a parameter, for its relative step",
       .default_value = 0.001,
       .minimum = 0},
  };
  add_weight_decay(adafactor.attributes, 0, "a step multiplies the parameter by 1 - rate * this");
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
    return
        [decayed = Adafactor(settings, step, true), plain = Adafactor(settings, step, false)](const ParameterRun& run) {
          const Adafactor& formula = run.decay ? decayed : plain;
          const std::int64_t n = std::ssize(run.parameter);
          const float factor = formula.rate * run.trust;
          if (!run.step.empty()) return take_scaled(factor, formula.keep, run.step.data(), run.parameter.data(), n);
          take_over_root(formula, factor, run.gradient.data(), run.states[0], run.parameter.data(), n);
        };
  };
  return adafactor;
}

}  // namespace lockstep::optim
