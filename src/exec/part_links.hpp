// PartLinks: what a part of a graph (graph/parts.hpp) gets from other parts and gives to them, and the tags of the
// messages. All ranks make the same numbers of the same parts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/parts.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::exec {

struct PartLinks {
  /// A value, or a gradient, on its way from one part to another.
  struct Link {
    int part = 0;           ///< the other one
    std::size_t bytes = 0;  ///< of a shard's
    int first_tag = 0;      ///< of shard 0
  };
  std::vector<Link> received;                ///< per PartBoundary::received
  std::vector<std::vector<Link>> sent;       ///< per PartBoundary::sent: to each part that reads it
  std::vector<Link> arrivals;                ///< per PartBoundary::arrivals
  std::vector<std::vector<Link>> gradients;  ///< per PartBoundary::received: its gradients, in the order of the program
};

/// A part as a rank computes it. What it refers to outlives its executor.
struct PartOfModel {
  const GraphPart& part;  ///< of the graph as the device lowers it
  PartLinks links;
  Communicator& ranks;       ///< all of the job
  std::int64_t samples = 1;  ///< of a shard
  int in_flight = 1;         ///< shards of a worker between forward and backward
  std::chrono::milliseconds timeout{60'000};
};

/// Those of a worker whose memory is there: one more than are between forward and backward, so that the next shard's
/// values can come meanwhile.
[[nodiscard]] inline int shards_in_memory(const PartOfModel& part) {
  return part.in_flight + 1;
}

/// Of part `own`. Throws Error(configuration) where there are more values between parts, times shards, than tags.
[[nodiscard]] PartLinks links_of(const std::vector<GraphPart>& parts, int own, int shards);

}  // namespace lockstep::exec
