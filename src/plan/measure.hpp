// Measures what this machine does, for a plan: the kernels of the very graph, one by one; the update of its parameters;
// rates of sums. As many threads as asked for do the same at once, each with memory of its own, as workers and ranks
// would: so what they take from each other (the memory's bandwidth, the clock) is in the seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/device.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/graph_builder.hpp"
#include "lockstep/job.hpp"
#include "lockstep/op.hpp"
#include "lockstep/optimizer.hpp"
#include "plan/rates.hpp"

namespace lockstep::plan {

struct MeasureOptions {
  int threads = 1;
  double seconds = 1;  ///< for the kernels: at least two shards are computed, however long they take
};

struct MeasuredGraph {
  std::vector<NodeSeconds> nodes;  ///< by node; the median over shards and threads
  double update = 0;               ///< seconds of one trained element
  int shards = 0;                  ///< of each thread that were timed
};

/// Bytes of memory that measure_graph() takes with one thread.
[[nodiscard]] std::int64_t bytes_to_measure(const Graph& graph, const exec::Device& device, int optimizer_states);

/// `graph`: as the device computes it, whole. Its parameters have first values, its inputs made-up ones.
[[nodiscard]] MeasuredGraph measure_graph(const Graph& graph, const exec::Device& device, const JobFile& job,
                                          const OptimizerRegistry& optimizers, const MeasureOptions& options);

/// The rates of this machine's CPU: products, convolutions and elementwise kernels of a few sizes, sums, an update with
/// AdamW. Messages are assumed. It takes about three seconds. `ops`: those of the program.
[[nodiscard]] Rates measure_rates(const exec::Device& device, const OpRegistry& ops, const ModelRegistry& models,
                                  const OptimizerRegistry& optimizers, int threads);

/// Of a message between two ranks of a host, where it was not measured (`lockstep bench device` does).
inline constexpr double kMessageSeconds = 50e-6;

/// Bytes a second that the addition of two gradients of so many bytes each reads and writes, on so many threads at
/// once.
[[nodiscard]] double measure_add(std::int64_t bytes, int threads);

}  // namespace lockstep::plan
