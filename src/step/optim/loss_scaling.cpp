#include "step/optim/loss_scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lockstep/error.hpp"

namespace lockstep::optim {

namespace {

[[noreturn]] void throw_no_smaller(const LossScaleOptions& options, std::int64_t step, double scale) {
  const bool fixed = options.fixed > 0;
  throw Error(ExitCode::diverged,
              fmt::format("step {}: some gradient is not a finite number at a loss scale of {}, {}; try {}a smaller "
                          "learning rate, clip_norm, or precision: bf16",
                          step + 1, scale, fixed ? "which is fixed" : "the smallest there is",
                          fixed ? "loss_scale: dynamic, " : ""));
}

}  // namespace

LossScale first_loss_scale(Precision precision, const LossScaleOptions& options) {
  if (precision != Precision::fp16) return {};
  return {.scale = static_cast<double>(options.fixed > 0 ? options.fixed : options.initial)};
}

double targets_in_mean(const Graph& graph, std::int64_t micro_batches) {
  const Node& loss = graph.nodes.at(graph.loss);
  const std::int64_t targets = graph.at(loss.inputs.at(1)).spec.elements() * micro_batches;
  return std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(targets, 1)));
}

void after_update(const LossScaleOptions& options, bool skipped, std::int64_t step, LossScale& scale) {
  if (skipped) {
    if (options.fixed > 0 || scale.scale <= kSmallestLossScale) throw_no_smaller(options, step, scale.scale);
    scale.scale /= 2;
    scale.good_updates = 0;
    ++scale.skipped;
    return;
  }
  if (options.fixed > 0 || ++scale.good_updates < options.growth_interval) return;
  scale.good_updates = 0;
  if (scale.scale < kLargestLossScale) scale.scale *= 2;
}

}  // namespace lockstep::optim
