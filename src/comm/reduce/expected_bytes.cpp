#include "comm/reduce/expected_bytes.hpp"

#include "comm/reduce/host_sums.hpp"
#include "comm/transport/hosts.hpp"

namespace lockstep::comm {

ExpectedBytes expected_bytes(const BucketLayout& layout, const ShardAssignment& assignment, const Topology& topology,
                             int rank) {
  const Hosts hosts(topology);
  const Tree tree(layout.shards);
  const int host = hosts.host_of(rank), ranks = static_cast<int>(assignment.shards_of_rank.size());
  const std::uint64_t partials = partials_of(tree, assignment, std::span(&rank, 1)).size();
  const std::uint64_t sums = sums_of_host(tree, assignment, hosts.ranks(host)).size();
  ExpectedBytes bytes;
  for (int b = 0; b < static_cast<int>(layout.bucket_elements.size()); ++b) {
    for (const auto& [owner, first, size] : slices_of(layout, b, ranks)) {
      const auto slice = static_cast<std::uint64_t>(size) * sizeof(float);
      if (owner == rank) {
        bytes.inside_host += slice * (hosts.ranks(host).size() - 1);
        bytes.between_hosts += slice * static_cast<std::uint64_t>(hosts.count() - 1);
      } else if (hosts.leader(host, owner) != rank) {
        bytes.inside_host += slice * partials;
      } else {
        bytes.between_hosts += slice * sums;
      }
    }
  }
  return bytes;
}

}  // namespace lockstep::comm
