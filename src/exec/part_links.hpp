// PartLinks: what a part of a graph (graph/parts.hpp) receives from other parts and sends to them, and the tags of the
// messages. All ranks compute the same tags from the same parts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/parts.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::exec {

struct PartLinks {
  /// A value or a gradient that one part sends to another.
  struct Link {
    int part = 0;           ///< the part at the other end
    std::size_t bytes = 0;  ///< per micro-batch
    int number = 0;         ///< among all links of the model
  };
  std::vector<Link> received;                ///< per PartBoundary::received
  std::vector<std::vector<Link>> sent;       ///< per PartBoundary::sent: a link to each part that reads it
  std::vector<Link> arrivals;                ///< per PartBoundary::arrivals
  std::vector<std::vector<Link>> gradients;  ///< per PartBoundary::received: its gradients, in program order
  int links_of_model = 0;

  /// An evaluation may have more micro-batches than a training step, so tags are dealt by micro-batch, and reused only
  /// after as many micro-batches as there are tags for.
  [[nodiscard]] int tag(const Link& link, int micro_batch) const;

  /// Sent to other parts for a micro-batch of a training step.
  [[nodiscard]] std::size_t bytes_sent() const;
};

/// A part as a rank computes it. What it refers to must outlive its executor.
struct PartOfModel {
  const GraphPart& part;  ///< of the graph as lowered by the device
  PartLinks links;
  Communicator& ranks;       ///< all ranks of the job
  std::int64_t samples = 1;  ///< of a micro-batch
  int in_flight = 1;         ///< micro-batches that a worker may have between forward and backward
  std::chrono::milliseconds timeout{60'000};
};

/// Micro-batches per worker that have memory: one more than are between forward and backward, so that the next
/// micro-batch's values can be received meanwhile.
[[nodiscard]] inline int micro_batches_in_memory(const PartOfModel& part) {
  return part.in_flight + 1;
}

/// The links of part `own`. Throws Error(configuration) if values between parts, times micro-batches, exceed the number
/// of tags.
[[nodiscard]] PartLinks links_of(const std::vector<GraphPart>& parts, int own, int micro_batches);

}  // namespace lockstep::exec
