// The average of a model's weights over its training: exponential (Polyak and Juditsky, "Acceleration of Stochastic
// Approximation by Averaging", 1992, with weights that fall off), or the mean (Izmailov and others, "Averaging Weights
// Leads to Wider Optima and Better Generalization", UAI 2018). It is one more state of the optimizer, kept and stored
// like the others by the owners of slices.
#pragma once

#include <cstdint>

#include "lockstep/job.hpp"
#include "step/optim/updater.hpp"

namespace lockstep::optim {

/// The weight that the parameters after step `step`, counted from 1, have in the average of `averaged` earlier ones; 0:
/// they are not taken.
[[nodiscard]] double average_weight(const AverageOptions& options, std::int64_t steps_per_epoch, std::int64_t step,
                                    std::int64_t averaged);

/// Frozen parameters do not change, and are their own average: copies them there. Before training begins.
void average_frozen(const Graph& graph, Model& model);

}  // namespace lockstep::optim
