// The order in which ranks compute the shards of a model that is cut into parts (graph/parts.hpp).
//
// The assignment is a table (part, shard) -> rank; data parallelism is one part on many ranks, a pipeline several parts
// in a row, branches are parts side by side. A task is the forward or the backward of one shard of one part. A rank
// takes the backward of its first shard that is ready; else the next forward of its list, if that is ready and it has
// fewer than `in_flight` shards of the part between the two. A task is ready as soon as it would not have to wait for
// what it reads: before that is there, if it is only read later (Overlap). So in a row of equal parts each rank comes
// to one forward, one backward in turn (1F1B: D. Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN
// Training", SOSP 2019), and no parts have to be equal for it.
//
// The tasks are scheduled by a simulation of the step, from costs that all ranks know: so every rank finds the same
// order, and the same code predicts the time of a step. No task begins before those have begun that make what it reads,
// so nobody can wait for somebody who waits for it, however long tasks really take. That decides on nothing: the order
// of tasks changes no bit.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::balance {

/// How far tasks of two parts overlap of which one reads a value of the other. Seconds on ranks of speed 1.
struct Overlap {
  double left = 0;             ///< of the other's forward, when the value has been made
  double before = 0;           ///< of the reader's forward, before the value is read
  double gradient_left = 0;    ///< of the reader's backward, when the value's gradient has been made
  double before_gradient = 0;  ///< of the other's backward, before the gradient is read
};

struct PartCost {
  double forward = 0, backward = 0;    ///< seconds of a shard, on a rank of speed 1
  std::vector<int> reads;              ///< by value that it receives: the part that makes it
  double receive = 0;                  ///< seconds until what it receives has come, when it is made on another rank
  std::vector<Overlap> overlaps = {};  ///< by entry of `reads`; empty: what is made is there when a task has ended
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

/// The order in which all ranks take shards, so that the ranks of a part all have something to do from the beginning,
/// whichever of its shards each has: as many of the first shards as of the last, by what each has of all. Where each
/// part has one rank it is that of their numbers.
[[nodiscard]] std::vector<int> order_of_shards(const std::vector<std::vector<int>>& rank_of_shard);

/// O(T log T) for T tasks.
[[nodiscard]] Pipeline schedule(const PipelineSetup& setup);

}  // namespace lockstep::balance
