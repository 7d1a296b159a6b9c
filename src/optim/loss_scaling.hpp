// The scale of the loss with precision: fp16, from update to update.
//
// Gradients of activations are small, and float16 ends at 2^-24: so the loss's are multiplied by a power of two, and
// the sums that the update is made from divided by it again. A scale that is too large shows: some gradient is no
// finite number. That update is skipped, and the scale is halved (Micikevicius and others, Mixed Precision Training,
// 2018). All ranks hold the same sums, so all see the same, without a word between them.
#pragma once

#include <cstdint>

#include "lockstep/graph.hpp"
#include "lockstep/job.hpp"

namespace lockstep::optim {

/// Where the scale of the loss has got to; checkpoints keep it.
struct LossScale {
  double scale = 0;               ///< of the next step, a power of two; 0: the precision is not fp16
  std::int64_t good_updates = 0;  ///< in a row, since the scale was changed
  std::int64_t skipped = 0;       ///< updates, in all
};

inline constexpr double kSmallestLossScale = 0x1p-14, kLargestLossScale = 0x1p24;

/// Of a job's first step; its scale is 0 where the precision is not fp16.
[[nodiscard]] LossScale first_loss_scale(Precision precision, const LossScaleOptions& options);

/// The scale is that of the mean loss over a global batch, while a shard's loss is a sum, which is divided by the count
/// of all targets only at the update. So the gradients that a shard's loss makes are multiplied by the scale over this:
/// the number of targets (labels, or values where targets are no labels) in a global batch, rounded up to a power of
/// two. `graph` is that of one of `shards` shards, with a loss.
[[nodiscard]] double targets_in_mean(const Graph& graph, std::int64_t shards);

/// What follows an update: halves the scale after one that was skipped, doubles it after a growth interval of good
/// ones. `step` counts from 0. Throws Error(diverged) where a gradient was not finite and the scale cannot be halved.
void after_update(const LossScaleOptions& options, bool skipped, std::int64_t step, LossScale& scale);

}  // namespace lockstep::optim
