// ElementwiseOptimizer: an optimizer with a single formula, used on CPUs and GPUs.
//
// A formula is a struct with everything that is the same for all elements in one update: it is constructed once for
// parameters with weight decay and once for those without, in double from the settings, and rounded. Its call operator
// updates one element; there is one for each number of state tensors that the optimizer may keep:
//
//   struct Momentum {
//     float rate, momentum;
//     Momentum(const Attributes& settings, const UpdateStep& step, bool decay);
//     LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void operator()(float& p, float g, float& m) const;
//   };
//
// A formula with a member `trust` has a factor for each parameter (TrustRatio). It then also has
//
//     void measure(float p, float g, float& m) const;           // updates an element's states
//     float direction(float p, float g, float m) const;         // after measure(): what p is compared with
//     float ratio(double parameter, double direction, std::int64_t elements) const;  // from both norms
//
// A formula with a type `Matrix` makes steps of whole matrices (MatrixStep). That is a formula for their elements, with
//
//     float direction(float g, float& m) const;     // updates an element's state; what its step is made of
//     void take(float& p, float step) const;        // the update
//     static NewtonSchulz iteration(const Attributes& settings, std::int64_t rows, std::int64_t columns);
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/host_device.hpp"
#include "core/vectorize.hpp"
#include "lockstep/attributes.hpp"
#include "lockstep/optimizer.hpp"

namespace lockstep::optim {

template <class Formula, std::size_t... kState>
constexpr bool takes_states(std::index_sequence<kState...> /*states*/) {
  return std::is_invocable_v<const Formula&, float&, float, decltype((void(kState), std::declval<float&>()))...>;
}

/// Calls call(std::index_sequence<0, 1, ...>), with one index per state tensor, if the formula has such a call
/// operator.
template <class Formula, std::size_t kStates = 0, class Call>
void with_states(std::size_t states, const Call& call) {
  if constexpr (kStates <= kMaxOptimizerStates) {
    using States = std::make_index_sequence<kStates>;
    if constexpr (takes_states<Formula>(States())) {
      if (states == kStates) return call(States());
    }
    with_states<Formula, kStates + 1>(states, call);
  }
}

/// Of an optimizer that GPUs compute, too.
template <class Optimizer>
concept HasFormula = requires {
  typename Optimizer::Formula;
};

/// Of one that GPUs compute by kernels of its own (adafactor_kernels.hpp).
template <class Optimizer>
concept HasOwnKernels = requires {
  typename Optimizer::OnGpus;
};

template <class Formula>
concept HasTrust = requires(Formula formula) {
  formula.trust;
};

/// Of an optimizer with steps of whole matrices (MatrixStep): `Matrix` is the formula for their elements.
template <class Formula>
concept HasMatrices = requires {
  typename Formula::Matrix;
};

/// Lanes of a sum of squares over a chunk, on CPUs and GPUs: element i is added to lane i % 8, and then the lanes in
/// order.
inline constexpr int kSquareLanes = 8;

template <class Value>
LOCKSTEP_INLINE double sum_of_squares(std::int64_t n, const Value& value) {
  double lanes[kSquareLanes] = {};
  const auto add = [&](std::int64_t i, int lane) LOCKSTEP_INLINE_LAMBDA {
    const auto one = static_cast<double>(value(i));
    lanes[lane] += one * one;
  };
  std::int64_t i = 0;
  for (; i + kSquareLanes <= n; i += kSquareLanes) {
    for (int lane = 0; lane < kSquareLanes; ++lane) add(i + lane, lane);
  }
  for (int lane = 0; i < n; ++i, ++lane) add(i, lane);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

template <class Formula, class... State>
LOCKSTEP_VECTORIZED SquareSums measure_run(Formula formula, std::int64_t n, const float* p, const float* g,
                                           State*... state) {
  for (std::int64_t i = 0; i < n; ++i) formula.measure(p[i], g[i], state[i]...);
  return {.parameter = sum_of_squares(n, [&](std::int64_t i) LOCKSTEP_INLINE_LAMBDA { return p[i]; }),
          .direction = sum_of_squares(
              n, [&](std::int64_t i) LOCKSTEP_INLINE_LAMBDA { return formula.direction(p[i], g[i], state[i]...); })};
}

template <class Formula, class... State>
LOCKSTEP_VECTORIZED void update_run(Formula formula, std::int64_t n, float* p, const float* g, State*... state) {
  for (std::int64_t i = 0; i < n; ++i) formula(p[i], g[i], state[i]...);
}

template <class F>
class ElementwiseOptimizer : public OptimizerDef {
 public:
  using Formula = F;
  ElementwiseOptimizer() {
    update = [](const Attributes& settings, const UpdateStep& step) -> ParameterUpdate {
      return [decayed = F(settings, step, true), plain = F(settings, step, false)](const ParameterRun& run) {
        F formula = run.decay ? decayed : plain;
        if constexpr (HasTrust<F>) formula.trust = run.trust;
        with_states<F>(
            run.states.size(), [&]<std::size_t... kState>(std::index_sequence<kState...> /*states*/) {
              update_run(formula, std::ssize(run.parameter), run.parameter.data(), run.gradient.data(),
                         run.states[kState]...);
            });
      };
    };
    if constexpr (HasTrust<F>) trust_ratio = measured;
  }

 private:
  static TrustRatio measured(const Attributes& settings, const UpdateStep& step) {
    const F decayed(settings, step, true), plain(settings, step, false);
    const auto measure = [decayed, plain](const ParameterRun& run) {
      SquareSums sums;
      with_states<F>(
          run.states.size(), [&]<std::size_t... kState>(std::index_sequence<kState...> /*states*/) {
            sums = measure_run(run.decay ? decayed : plain, std::ssize(run.parameter), run.parameter.data(),
                               run.gradient.data(), run.states[kState]...);
          });
      return sums;
    };
    return {.measure = measure, .ratio = [decayed](double parameter, double direction, std::int64_t elements) {
              return decayed.ratio(parameter, direction, elements);
            }};
  }
};

/// A running average that has taken one more value, on CPUs and GPUs; with the weight 1, and an average of 0, the
/// value.
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float averaged(float average, float value, float weight) {
  return average + weight * (value - average);
}

// The weight decay settings, which all optimizers here have.

inline constexpr const char* kCoupledDecayDoc = "this times the parameter is added to its gradient";

inline constexpr const char* kTrustedDecayDoc = "this times the parameter is added to its step, before its factor";

inline void add_weight_decay(std::vector<AttributeSpec>& attributes, double weight_decay, const std::string& doc) {
  attributes.push_back(
      {.name = "weight_decay", .kind = AttributeKind::number, .doc = doc, .default_value = weight_decay, .minimum = 0});
  attributes.push_back({.name = "decay_all",
                        .kind = AttributeKind::boolean,
                        .doc = "decay norms and biases too",
                        .default_value = false});
}

inline double weight_decay_of(const Attributes& settings, bool decay) {
  return decay ? settings.number("weight_decay") : 0.0;
}

}  // namespace lockstep::optim
