// What the exact all-reduce sends, by the formula. A rank with k partial sums gives the leaders on its host
// (comm/reduce/host_sums.hpp) their slices of each; as a leader it sends owners on other hosts their slices of the
// host's sums; and as an owner its finished slice to each peer on its host and once to each other host. On one host
// that is (k + 1)(R - 1) / R of the gradient for equal slices.
#pragma once

#include <cstdint>

#include "comm/reduce/shard_assignment.hpp"
#include "comm/reduce/slices.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

struct ExpectedBytes {
  std::uint64_t inside_host = 0, between_hosts = 0;
};

/// Bytes that `rank` sends in one step, over all buckets; scalars not counted.
[[nodiscard]] ExpectedBytes expected_bytes(const BucketLayout& layout, const ShardAssignment& assignment,
                                           const Topology& topology, int rank);

}  // namespace lockstep::comm
