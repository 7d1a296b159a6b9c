// Optimizers: elementwise updates of a run of parameters. Contraction is off and every loop is plain, so SIMD
// functor and tail round alike and the cut into runs changes no bit.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/job.hpp"
#include "optim/optimizer_formulas.hpp"

namespace lockstep::optim {

/// What is the same for all parameters of one step.
struct UpdateScalars {
  double learning_rate = 0;
  std::int64_t step = 0;    ///< of the run, from 0
  std::int64_t update = 0;  ///< the optimizer's own count, from 0: less than `step` where updates were left out
  double loss_scale = 1;    ///< what the sums of gradients were multiplied by
};

/// What the formulas take in one step, for parameters with weight decay or without it.
[[nodiscard]] SgdScalars sgd_scalars(const OptimizerOptions& options, const UpdateScalars& step, bool decay);
[[nodiscard]] AdamScalars adam_scalars(const OptimizerOptions& options, const UpdateScalars& step, bool decay);

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Names of the fp32 state tensors that each parameter has: {"momentum"} or {"first", "second"}.
  [[nodiscard]] virtual std::vector<std::string> state_names() const = 0;
  virtual void begin_step(const UpdateScalars& scalars) = 0;
  /// Updates `parameter` from `gradient`; `states` in the order of state_names(). Called by several workers.
  virtual void update(std::span<float> parameter, std::span<const float> gradient, std::span<float* const> states,
                      bool decay) const = 0;
};

/// sgd: PyTorch's SGD (decay is added to the gradient; the first step sets the momentum to the gradient).
/// adam: Kingma and Ba, 2015, decay added to the gradient. adamw: Loshchilov and Hutter, 2019, decoupled decay.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

}  // namespace lockstep::optim
