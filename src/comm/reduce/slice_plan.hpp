// The exact all-reduce of one bucket as messages, for a library that has only send and receive (NCCL): who sends which
// slice of which partial sum to whom, and which additions are made of them, first inside each host, then between hosts
// (comm/reduce/host_sums.hpp). Pure: the bits depend on the tree.
//
// Between two ranks the messages of a round are in one order on both sides (by slice, then by partial sum), since such
// libraries match them by order alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/reduce/host_sums.hpp"
#include "comm/transport/hosts.hpp"

namespace lockstep::comm {

struct SlicePlan {
  /// Where a slice of some sum stands.
  struct Place {
    int root = -1;        ///< >= 0: in this rank's partial sum of that number; else: in receive memory
    std::int64_t at = 0;  ///< elements from the start of the bucket, or of receive memory
  };
  struct Message {
    int peer = 0;
    Place place;
    std::int64_t count = 0;
  };
  /// A sum of slices in the tree's order. Each addition is left += right in the left one's place.
  struct Sum {
    std::vector<Place> parts;
    std::vector<Addition> additions;
    std::int64_t count = 0;
  };
  struct Round {
    std::vector<Message> sends, receives;
  };
  Round inside;                       ///< partial sums to the slices' leaders on this host
  std::vector<Sum> gathered;          ///< what this rank leads for owners on other hosts
  Round between;                      ///< that, to the owners
  Sum own;                            ///< the own slice
  std::int64_t first = 0;             ///< of the own slice, in the bucket
  std::int64_t receive_elements = 0;  ///< of receive memory
};

/// Where the sum stands after its additions.
[[nodiscard]] SlicePlan::Place result_of(const SlicePlan::Sum& sum);

/// What does not depend on the bucket: each host's sums.
using SumsOfHosts = std::vector<std::vector<HostSum>>;
[[nodiscard]] SumsOfHosts sums_of_hosts(const Tree& tree, const ShardAssignment& assignment, const Hosts& hosts);

/// `bounds`: slice_bounds() of the bucket.
[[nodiscard]] SlicePlan slice_plan(const Tree& tree, const Hosts& hosts, const SumsOfHosts& sums, int rank,
                                   std::span<const std::int64_t> bounds);

}  // namespace lockstep::comm
