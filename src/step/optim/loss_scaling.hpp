// The loss scale for precision: fp16, from update to update.
//
// Gradients of activations are small, and float16's smallest value is 2^-24; so the loss's gradients are multiplied by
// a power of two, and the sums that the update uses are divided by it again. If the scale is too large, some gradient
// is not finite. That update is skipped, and the scale is halved (Micikevicius and others, Mixed Precision Training,
// 2018). All ranks hold the same sums, so all of them detect it without communication.
#pragma once

#include <cstdint>

#include "lockstep/graph.hpp"
#include "lockstep/job.hpp"

namespace lockstep::optim {

/// The current state of the loss scale; stored in checkpoints.
struct LossScale {
  double scale = 0;               ///< of the next step, a power of two; 0: the precision is not fp16
  std::int64_t good_updates = 0;  ///< updates in a row since the scale was changed
  std::int64_t skipped = 0;       ///< updates skipped in total
};

inline constexpr double kSmallestLossScale = 0x1p-14, kLargestLossScale = 0x1p24;

/// For a job's first step; its scale is 0 if the precision is not fp16.
[[nodiscard]] LossScale first_loss_scale(Precision precision, const LossScaleOptions& options);

/// The loss scale refers to the mean loss over a global batch, while a micro-batch's loss is a sum, which is divided by
/// the count of all targets only at the update. So the gradients of a micro-batch's loss are multiplied by the scale
/// divided by this number: the targets (labels, or values if targets are not labels) in a global batch, rounded up to a
/// power of two. `graph`: of one of `micro_batches` micro-batches, with a loss.
[[nodiscard]] double targets_in_mean(const Graph& graph, std::int64_t micro_batches);

/// Call after an update: halves the scale if it was skipped, doubles it after a growth interval of successful ones.
/// `step` counts from 0. Throws Error(diverged) if a gradient was not finite and the scale cannot be halved.
void after_update(const LossScaleOptions& options, bool skipped, std::int64_t step, LossScale& scale);

}  // namespace lockstep::optim
