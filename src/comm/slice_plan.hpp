// The exact exchange of one bucket as messages, for a library that has only send and receive (NCCL): who sends which
// slice of which partial sum to whom, and which additions the owner makes of them. Pure: the bits depend on the tree.
//
// Between two ranks the messages of a bucket are in order of the sender's roots, on both sides, since such libraries
// match them by order alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/assignment.hpp"
#include "comm/tree.hpp"

namespace lockstep::comm {

struct SlicePlan {
  struct Send {
    int to = 0;
    int root = 0;                       ///< which of this rank's partial sums
    std::int64_t first = 0, count = 0;  ///< elements of the bucket
  };
  struct Receive {
    int from = 0;
    std::int64_t at = 0;  ///< in this rank's receive memory, in elements; each message holds the own slice
  };
  /// A partial sum, as the owner has it.
  struct Partial {
    int own_root = -1;    ///< >= 0: this rank's own
    std::int64_t at = 0;  ///< else: where it is received
  };
  std::vector<Send> sends;
  std::vector<Receive> receives;
  std::vector<Partial> partials;
  std::vector<Addition> additions;    ///< of partials, then of results: comm/tree.hpp
  std::int64_t first = 0, count = 0;  ///< the own slice
  std::int64_t receive_elements = 0;  ///< of receive memory
};

/// `bounds`: slice_bounds() of the bucket.
[[nodiscard]] SlicePlan slice_plan(const Tree& tree, const Assignment& assignment, int rank,
                                   std::span<const std::int64_t> bounds);

}  // namespace lockstep::comm
