// Rates: what a device does in a second, and the seconds of a graph's nodes that follow from them.
//
// A node that multiplies matrices takes its floating-point operations by the rate of products; any other the bytes that
// it reads and writes by the rate of elementwise work. Where a node has been timed itself (plan/measure), that is
// better; the rates are for devices that are not here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"

namespace lockstep::plan {

/// Of one worker, while the device's other workers compute, too.
struct Rates {
  std::string device;           ///< "AMD EPYC 7763, avx2"
  double matmul_flops = 0;      ///< floating-point operations a second: matrix products
  double conv_flops = 0;        ///< the same: convolutions
  double element_bytes = 0;     ///< bytes a second that elementwise kernels read and write
  double add_bytes = 0;         ///< bytes a second that the addition of two gradients reads and writes
  double update_bytes = 0;      ///< the same of an optimizer's update
  double message_seconds = 0;   ///< of a message between two ranks, however short
  double message_bytes = 0;     ///< bytes a second of a long one
  double part_bytes = 0;        ///< the same, of what goes from part to part; 0: as any other
  double kernel_seconds = 0;    ///< of each kernel, beside its work: a GPU's launch
  std::int64_t memory = 0;      ///< bytes of the device; 0: the host's
  int cores = 1;                ///< of the host, that its ranks share; of a GPU: as many as there are ranks
  bool uses_host_cores = true;  ///< to compute; a GPU does not

  [[nodiscard]] double bytes_between_parts() const { return part_bytes > 0 ? part_bytes : message_bytes; }
  [[nodiscard]] bool operator==(const Rates&) const = default;
};

/// Of a shard.
struct NodeSeconds {
  double forward = 0, backward = 0;
  double first = 0;  ///< more, of a worker's first shard after an update: weights are packed again
};

/// By node.
[[nodiscard]] std::vector<NodeSeconds> seconds_by_rates(const Graph& graph, const Rates& rates);

/// Bytes that an update reads and writes for one trained element: the sum, the gradient, the parameter, the states.
[[nodiscard]] constexpr double update_bytes_of_element(int states) {
  return 4.0 * (1 + 2 + 2 + 2 * states);
}

}  // namespace lockstep::plan
