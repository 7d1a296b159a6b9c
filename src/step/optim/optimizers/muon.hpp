// muon: momentum whose step is made orthogonal, for the weights of all layers that multiply but the last one
// (Value::matrix); adamw for everything else (Jordan and others, "Muon: an optimizer for hidden layers in neural
// networks", 2024). The step of a matrix [rows, columns] is multiplied by 0.2 sqrt(max(rows, columns)), so that it is
// about as large as adamw's, and rate and decay are those of adamw (Liu and others, "Muon is scalable for LLM
// training", 2025).
#pragma once

#include <algorithm>
#include <cmath>

#include "step/optim/newton_schulz.hpp"
#include "step/optim/optimizers/adamw.hpp"

namespace lockstep::optim {

/// The running mean of a matrix's gradient, what of it is made orthogonal, and the update.
struct MuonMatrix {
  float rate, keep, one_minus_momentum, momentum;
  bool nesterov;

  MuonMatrix(const Attributes& settings, const UpdateStep& of, bool decays)
      : rate(of.learning_rate),
        keep(1 - of.learning_rate * weight_decay_of(settings, decays)),
        one_minus_momentum(1 - settings.number("momentum")),
        momentum(settings.number("momentum")),
        nesterov(settings.boolean("nesterov")) {}

  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float direction(float g, float& m) const {
    m = averaged(m, g, one_minus_momentum);
    return nesterov ? averaged(g, m, momentum) : m;
  }
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void take(float& p, float step) const { p = p * keep - rate * step; }

  static NewtonSchulz iteration(const Attributes& settings, std::int64_t rows, std::int64_t columns) {
    return {.steps = static_cast<int>(settings.integer("steps")),
            .epsilon = settings.number("epsilon"),
            .factor = static_cast<float>(0.2 * std::sqrt(static_cast<double>(std::max(rows, columns))))};
  }
};

struct Muon : AdamW {
  using AdamW::AdamW;
  using Matrix = MuonMatrix;
};

LOCKSTEP_VECTORIZED inline void write_directions(MuonMatrix formula, std::int64_t n, const float* g, float* m,
                                                 float* direction) {
  for (std::int64_t i = 0; i < n; ++i) direction[i] = formula.direction(g[i], m[i]);
}
LOCKSTEP_VECTORIZED inline void take_steps(MuonMatrix formula, std::int64_t n, const float* step, float* p) {
  for (std::int64_t i = 0; i < n; ++i) formula.take(p[i], step[i]);
}

inline MatrixStep muon_step(const Attributes& settings, const UpdateStep& step) {
  const auto measure = [formula = MuonMatrix(settings, step, false)](const ParameterRun& run,
                                                                     std::span<float> direction) {
    write_directions(formula, std::ssize(direction), run.gradient.data(), run.states[0], direction.data());
  };
  const auto transform = [settings](std::span<float> matrix, std::int64_t rows, std::int64_t columns,
                                    std::span<float* const> /*states*/) {
    orthogonalize(matrix, rows, columns, MuonMatrix::iteration(settings, rows, columns));
  };
  return {.measure = measure, .transform = transform};
}

inline ElementwiseOptimizer<Muon> make_muon() {
  auto muon = adam_with<Muon>(0.1, "a step multiplies the parameter by 1 - rate * this");
  muon.name = "muon";
  muon.doc = "orthogonal steps of momentum for matrices, adamw for the rest";
  muon.order = 10;
  muon.learning_rate = 0.001;
  muon.attributes.push_back({.name = "momentum",
                             .kind = AttributeKind::number,
                             .doc = "of matrices: decay of the gradient's running mean",
                             .default_value = 0.95,
                             .minimum = 0,
                             .maximum = 1,
                             .below_maximum = true});
  muon.attributes.push_back({.name = "nesterov",
                             .kind = AttributeKind::boolean,
                             .doc = "of matrices: mix the gradient into the mean once more",
                             .default_value = true});
  muon.attributes.push_back({.name = "steps",
                             .kind = AttributeKind::integer,
                             .doc = "of matrices: orthogonalization steps",
                             .default_value = std::int64_t{5},
                             .minimum = 1,
                             .maximum = 20});
  muon.matrix_step = muon_step;
  muon.matrix_scratch = orthogonalize_floats;
  muon.matrix_operations = [](const Attributes& settings, std::int64_t rows, std::int64_t columns) {
    return orthogonalize_operations(rows, columns, settings.integer("steps"));
  };
  muon.update = [elementwise = muon.update](const Attributes& settings, const UpdateStep& step) -> ParameterUpdate {
    return [other = elementwise(settings, step), decayed = MuonMatrix(settings, step, true),
            plain = MuonMatrix(settings, step, false)](const ParameterRun& run) {
      if (run.step.empty()) return other(run);
      take_steps(run.decay ? decayed : plain, std::ssize(run.parameter), run.step.data(), run.parameter.data());
    };
  };
  return muon;
}

}  // namespace lockstep::optim
