// PartLinks: what a part of a graph (graph/parts.hpp) receives from other parts and sends to them, and the tags of the
// messages. All ranks compute the same tags from the same parts and the same schedule.
//
// A tag says which link a message is of, and a number that micro-batches share whose messages cannot overtake each
// other (message_numbers), so the number of tags does not grow with the number of micro-batches.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/transport/pulse.hpp"
#include "graph/parts.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::exec {

struct PartLinks {
  /// A value or a gradient that one part sends to another.
  struct Link {
    int part = 0;           ///< the part at the other end
    std::size_t bytes = 0;  ///< per micro-batch
    int first_tag = 0;      ///< of the messages with number 0
  };
  std::vector<Link> received;                ///< per PartBoundary::received
  std::vector<std::vector<Link>> sent;       ///< per PartBoundary::sent: a link to each part that reads it
  std::vector<Link> arrivals;                ///< per PartBoundary::arrivals
  std::vector<std::vector<Link>> gradients;  ///< per PartBoundary::received: its gradients, in program order
  int tags_per_number = 1;                   ///< most links from one part to another

  int tag(const Link& link, int number) const;
  /// Sent to other parts for a micro-batch of a training step.
  std::size_t bytes_sent() const;
};

/// By part and micro-batch: the rank that computes it.
using RankOfMicroBatch = std::vector<std::vector<int>>;

/// By part and micro-batch: the numbers (message_numbers) of the messages between the rank's own part and that one;
/// empty where there are none.
struct MessageNumbers {
  std::vector<std::vector<int>> to, from;
};

/// A part as a rank computes it. What it refers to must outlive its executor.
struct PartOfModel {
  const GraphPart& part;  ///< of the graph as lowered by the device
  PartLinks links;
  Communicator& ranks;       ///< all ranks of the job
  std::int64_t samples = 1;  ///< of a micro-batch
  int in_flight = 1;         ///< micro-batches that a worker may have between forward and backward
  std::chrono::milliseconds timeout{60'000};
  comm::Pulse* pulse = nullptr;  ///< null: the timeout is for each message
};

/// Micro-batches per worker that have memory: one more than are between forward and backward, so that the next
/// micro-batch's values can be received meanwhile.
[[nodiscard]] inline int micro_batches_in_memory(const PartOfModel& part) {
  return part.in_flight + 1;
}

/// Micro-batches of a worker between forward and backward if the job does not say: 1F1B needs as many as there are
/// parts, and more for a part with fewer ranks than it feeds; with one more, activations travel while the parts
/// compute.
[[nodiscard]] int default_in_flight(const std::vector<std::vector<int>>& ranks_of_part);

/// The links of part `own`.
[[nodiscard]] PartLinks links_of(const std::vector<GraphPart>& parts, int own);

/// The message of a link for a micro-batch.
struct PartMessage {
  int from = 0, to = 0;                ///< ranks
  int sender = 0, receiver = 0;        ///< workers, with numbers of their own among those of all ranks
  std::size_t sent = 0, received = 0;  ///< positions in the orders of what the two workers do
};

/// Numbers for the messages of a link, in order of the micro-batches: two of them from one rank to another have the
/// same number only if one worker sends both, and another receives them in the same order. Messages with one tag arrive
/// in order, so each is received as what it is.
[[nodiscard]] std::vector<int> message_numbers(const std::vector<PartMessage>& messages);

}  // namespace lockstep::exec
