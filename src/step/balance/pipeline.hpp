// The order in which ranks compute the micro-batches of a model that is cut into parts (graph/parts.hpp).
//
// The assignment is a table (part, micro-batch) -> rank; data parallelism is one part on many ranks, a pipeline is
// several parts in a row, branches are parts side by side. A task is the forward or the backward of one micro-batch of
// one part. A rank takes the first of its backwards that is ready; else the next forward of its list, if that is ready
// and fewer than `in_flight` micro-batches of the part are between forward and backward. A task is ready as soon as it
// would not have to wait for what it reads; this may be before that is available, if it is only read later (Overlap).
// So in a row of equal parts each rank alternates one forward and one backward (1F1B: D. Narayanan et al., "PipeDream:
// Generalized Pipeline Parallelism for DNN Training", SOSP 2019), but parts need not be equal.
//
// The tasks are scheduled by simulating the step, with costs that all ranks know: so every rank computes the same
// order, and the same code predicts the time of a step. No task begins before the tasks that make what it reads have
// begun, so there is no deadlock, however long tasks really take. The order of tasks changes no bit of the result.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::balance {

/// How far two tasks can overlap of which one reads a value of the other. Seconds on ranks of speed 1.
struct Overlap {
  double left = 0;             ///< remaining time of the other's forward when the value has been made
  double before = 0;           ///< time of the reader's forward before the value is read
  double gradient_left = 0;    ///< remaining time of the reader's backward when the value's gradient has been made
  double before_gradient = 0;  ///< time of the other's backward before the gradient is read
};

struct PartCost {
  double forward = 0, backward = 0;    ///< seconds per micro-batch, on a rank of speed 1
  std::vector<int> reads;              ///< by received value: the part that makes it
  double receive = 0;                  ///< seconds until what it receives has arrived, if it is made on another rank
  std::vector<Overlap> overlaps = {};  ///< by entry of `reads`; empty: what a task makes is available when it has ended
};

struct PipelineSetup {
  std::vector<PartCost> parts;                        ///< no part reads values of a later one
  std::vector<std::vector<int>> rank_of_micro_batch;  ///< by part and micro-batch
  std::vector<double> speeds;                         ///< by rank
  int in_flight = 0;  ///< most micro-batches of a part on one rank between forward and backward; 0:
                      ///< all
};

struct Task {
  int part = 0, micro_batch = 0;
  bool forward = true;
  bool operator==(const Task&) const = default;
};

struct Pipeline {
  std::vector<std::vector<Task>> tasks;  ///< by rank, in order
  std::vector<Task> order;               ///< all tasks, as they begin: after those that make what they read
  double seconds = 0;                    ///< predicted duration of the step
  std::vector<double> busy;              ///< by rank: seconds of its own tasks
};

/// The order in which all ranks take micro-batches: such that all ranks of a part are busy from the beginning,
/// whichever of its micro-batches they have, because the first and last micro-batches are spread evenly over them. If
/// each part has one rank, it is the order of their numbers.
[[nodiscard]] std::vector<int> order_of_micro_batches(const std::vector<std::vector<int>>& rank_of_micro_batch);

/// O(T log T) for T tasks.
[[nodiscard]] Pipeline schedule(const PipelineSetup& setup);

}  // namespace lockstep::balance
