// Measures this machine for a plan: the kernels of the actual graph, one by one; the update of its parameters; rates of
// sums. As many threads as requested do the same at once, each with its own memory, as workers and ranks would: so the
// measured seconds include what they take from each other (memory bandwidth, clock frequency).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/graph.hpp"
#include "lockstep/graph_builder.hpp"
#include "lockstep/job.hpp"
#include "lockstep/op.hpp"
#include "lockstep/optimizer.hpp"
#include "run/plan/rates.hpp"
#include "step/exec/device.hpp"

namespace lockstep::plan {

struct MeasureOptions {
  int threads = 1;
  double seconds = 1;  ///< for the kernels; at least two micro-batches are computed, however long they take
};

struct MeasuredGraph {
  std::vector<NodeSeconds> nodes;  ///< by node; the median over micro-batches and threads
  double update = 0;               ///< seconds per trained element
  int micro_batches = 0;           ///< micro-batches that were timed on each thread
};

/// Bytes of memory that measure_graph() needs with one thread.
[[nodiscard]] std::int64_t bytes_to_measure(const Graph& graph, const exec::Device& device, int optimizer_states);

/// `graph`: whole, as the device computes it. Its parameters have initial values, its inputs made-up ones.
[[nodiscard]] MeasuredGraph measure_graph(const Graph& graph, const exec::Device& device, const JobFile& job,
                                          const OptimizerRegistry& optimizers, const MeasureOptions& options);

/// The rates of this machine's CPU: products, convolutions and elementwise kernels of a few sizes, sums, an update with
/// AdamW. Messages are assumed, not measured. Takes about three seconds. `ops`: the program's.
[[nodiscard]] Rates measure_rates(const exec::Device& device, const OpRegistry& ops, const ModelRegistry& models,
                                  const OptimizerRegistry& optimizers, int threads);

/// Assumed for a message between two ranks of a host, if it was not measured (`lockstep bench device` does that).
inline constexpr double kMessageSeconds = 50e-6;

/// Bytes per second that adding two gradients of this size reads and writes, on this many threads at once.
[[nodiscard]] double measure_add(std::int64_t bytes, int threads);

}  // namespace lockstep::plan
