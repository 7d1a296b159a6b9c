// Rates: how fast a device is, and the seconds of a graph's nodes that follow from them.
//
// A node that multiplies matrices takes its floating-point operations divided by the rate of products; any other node
// takes the bytes that it reads and writes divided by the rate of elementwise work. Timing the node itself
// (run/plan/measure) is more accurate; rates are for devices that are not present.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"

namespace lockstep::plan {

/// The rates of one worker while the device's other workers compute, too.
struct Rates {
  std::string device;           ///< "AMD EPYC 7763, avx2"
  double matmul_flops = 0;      ///< floating-point operations per second: matrix products
  double conv_flops = 0;        ///< floating-point operations per second: convolutions
  double element_bytes = 0;     ///< bytes per second that elementwise kernels read and write
  double add_bytes = 0;         ///< bytes per second that adding two gradients reads and writes
  double update_bytes = 0;      ///< bytes per second that an optimizer's update reads and writes
  double message_seconds = 0;   ///< per message between two ranks, however short
  double message_bytes = 0;     ///< bytes per second of a long message
  double part_bytes = 0;        ///< bytes per second between parts; 0: message_bytes
  double network_bytes = 0;     ///< bytes per second to other hosts; 0: message_bytes
  double kernel_seconds = 0;    ///< per kernel, besides its work: a GPU's launch
  std::int64_t memory = 0;      ///< bytes on the device; 0: the host's
  int cores = 1;                ///< of the host, shared by its ranks; for GPUs, the number of ranks
  bool uses_host_cores = true;  ///< whether it computes on them; a GPU does not

  double bytes_between_hosts() const { return network_bytes > 0 ? network_bytes : message_bytes; }
  double bytes_between_parts(bool on_other_hosts) const {
    const double here = part_bytes > 0 ? part_bytes : message_bytes;
    return on_other_hosts && network_bytes > 0 ? std::min(here, network_bytes) : here;
  }
  bool operator==(const Rates&) const = default;
};

/// Per micro-batch.
struct NodeSeconds {
  double forward = 0, backward = 0;
  double first = 0;  ///< additional time of a worker's first micro-batch after an update: weights are packed again
};

/// Whether its time is that of products: linear, conv, attention, lstm, gru.
[[nodiscard]] bool multiplies_matrices(const Node& node);

/// By node.
[[nodiscard]] std::vector<NodeSeconds> seconds_by_rates(const Graph& graph, const Rates& rates);

/// Bytes that an update reads and writes per trained element: the sum, the gradient, the parameter, the states.
[[nodiscard]] constexpr double update_bytes_of_element(int states) {
  return 4.0 * (1 + 2 + 2 + 2 * states);
}

}  // namespace lockstep::plan
