#include "comm/expected_bytes.hpp"

#include "comm/tree.hpp"

namespace lockstep::comm {

std::uint64_t expected_bytes(const ExchangeLayout& layout, const Assignment& assignment, const Topology& topology,
                             int rank) {
  const auto ranks = static_cast<std::int64_t>(assignment.shards_of_rank.size());
  const auto& shards = assignment.shards_of_rank.at(static_cast<std::size_t>(rank));
  const auto subtrees = static_cast<std::int64_t>(Tree(layout.shards).maximal_subtrees(shards).size());
  const auto receivers = static_cast<std::int64_t>(topology.local_size(rank)) - 1 +
                         static_cast<std::int64_t>(topology.host_names.size()) - 1;
  std::int64_t elements = 0;
  for (std::size_t b = 0; b < layout.bucket_elements.size(); ++b) {
    const auto bounds = slice_bounds(layout.bucket_elements[b], layout.cuts[b], static_cast<int>(ranks));
    const auto r = static_cast<std::size_t>(rank);
    const std::int64_t own = bounds[r + 1] - bounds[r];
    elements += subtrees * (layout.bucket_elements[b] - own) + receivers * own;
  }
  return static_cast<std::uint64_t>(elements) * sizeof(float);
}

}  // namespace lockstep::comm
