// What the exact exchange sends, by the formula: with k subtrees, a rank sends each other owner its slice of k
// partial sums, and its own reduced slice to each peer on its host and once to each other host. On one host that is
// (k + 1)(R - 1) / R of the gradient for equal slices.
#pragma once

#include <cstdint>

#include "comm/assignment.hpp"
#include "comm/slices.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// Bytes that `rank` sends in one step, over all buckets; scalars not counted.
[[nodiscard]] std::uint64_t expected_bytes(const ExchangeLayout& layout, const Assignment& assignment,
                                           const Topology& topology, int rank);

}  // namespace lockstep::comm
