// Waves of a model in parts whose ranks gather what they divide (step/exec/gather_layout.hpp): tasks of one part, on
// different workers, that share one pass of gathers over the part's forward, or its backward. The ranks of a part make
// its waves in one order, and a wave ends on none of them before it has ended on all. So ranks can come to a standstill
// unless there is an order of the waves of all parts in which each wave comes after all waves that it waits for.
//
// waves_of() makes such an order: a list of waves. It takes the tasks in an order in which each comes after those that
// it waits for, and adds a task to the first wave that can take it and comes after all waves of those. If there is
// none, the task begins a new wave, at the end of the list. So no task waits longer in order to share a wave with a
// later one.
#pragma once

#include <span>
#include <vector>

#include "step/balance/pipeline.hpp"

namespace lockstep::balance {

/// By task of `order`: the number of its wave among those of its part. `setup`: its ranks are workers. `order`: for
/// training, Pipeline::order; for an evaluation, order_of_evaluation().
[[nodiscard]] std::vector<int> waves_of(const PipelineSetup& setup, std::span<const Task> order);

/// Forwards only: micro-batch by micro-batch, in the order of order_of_micro_batches().
[[nodiscard]] std::vector<Task> order_of_evaluation(const PipelineSetup& setup);

}  // namespace lockstep::balance
