// The order in which ranks compute the shards of a model that is cut into parts (graph/parts.hpp).
//
// The assignment is a table (part, shard) -> rank; data parallelism is one part on many ranks, a pipeline several parts
// in a row, branches are parts side by side. A task is the forward or the backward of one shard of one part. A rank
// takes the backward of its lowest shard that is ready; else the next forward of its list, if that is ready and it has
// fewer than `in_flight` shards of the part between the two. So in a row of equal parts each rank comes to one forward,
// one backward in turn (1F1B: D. Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training",
// SOSP 2019), and no parts have to be equal for it.
//
// The tasks are scheduled by a simulation of the step, from costs that all ranks know: so every rank finds the same
// order, nobody can wait for somebody who waits for it, and the same code predicts the time of a step. What a step
// really takes decides on nothing: the order of tasks changes no bit.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::balance {

struct PartCost {
  double forward = 0, backward = 0;  ///< seconds of a shard, on a rank of speed 1
  std::vector<int> reads;            ///< the parts whose values it receives
  double receive = 0;                ///< seconds until what it receives has come, when it is made on another rank
};

struct PipelineSetup {
  std::vector<PartCost> parts;                  ///< no part reads a later one
  std::vector<std::vector<int>> rank_of_shard;  ///< by part and shard
  std::vector<double> speeds;                   ///< by rank
  int in_flight = 0;                            ///< shards of a part on one rank between forward and backward; 0: all
};

struct Task {
  int part = 0, shard = 0;
  bool forward = true;
  bool operator==(const Task&) const = default;
};

struct Pipeline {
  std::vector<std::vector<Task>> tasks;  ///< by rank, in their order
  double seconds = 0;                    ///< of the step, by the costs
  std::vector<double> busy;              ///< by rank: seconds of its own tasks
};

/// O(T log T) for T tasks.
[[nodiscard]] Pipeline schedule(const PipelineSetup& setup);

}  // namespace lockstep::balance
