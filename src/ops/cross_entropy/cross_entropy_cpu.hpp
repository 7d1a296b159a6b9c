// The negative log likelihood, for the loss cross_entropy and the metric perplexity.
#pragma once

#include <memory>

#include "lockstep/op.hpp"

namespace lockstep::ops {

[[nodiscard]] std::unique_ptr<Kernel> make_log_loss_cpu(const KernelRequest& request, double label_smoothing);

}  // namespace lockstep::ops
