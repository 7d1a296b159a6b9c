// What one shard's loss and gradients are, to the last bit, as a hash: how ranks find out whether they compute alike.
#pragma once

#include <cstdint>
#include <string>

#include "exec/executor.hpp"
#include "lockstep/graph.hpp"

namespace lockstep::train {

/// Trains shard 0 of step 0 from the graph's first values, which `seed` draws, and returns 16 hexadecimal digits over
/// its loss, gradients and statistics. `executor`: of `graph`, on `device`. Takes memory for the parameters and their
/// gradients while it runs. `loss_scale`: of exec::TrainStep.
[[nodiscard]] std::string hash_of_shard(exec::Executor& executor, const Graph& graph, const exec::Device& device,
                                        std::uint64_t seed, InputSource& source, float loss_scale = 1);

}  // namespace lockstep::train
