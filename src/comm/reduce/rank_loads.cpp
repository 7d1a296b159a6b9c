#include "comm/reduce/rank_loads.hpp"

#include <algorithm>
#include <numeric>

#include "comm/reduce/tree.hpp"
#include "core/round_up.hpp"

namespace lockstep::comm {

namespace {

std::uint64_t bytes(std::int64_t elements) {
  return elements * sizeof(float);
}

/// By rank: the sum over the slices that it leads for owners on other hosts. `own`: by rank.
std::vector<std::int64_t> led_of(const std::vector<std::int64_t>& own, const Hosts& hosts) {
  std::vector<std::int64_t> of_local_rank, led(own.size());
  for (std::size_t rank = 0; rank < own.size(); ++rank) {
    const std::size_t local = hosts.local_rank(rank);
    of_local_rank.resize(std::max(of_local_rank.size(), local + 1));
    of_local_rank[local] += own[rank];
  }
  for (int host = 0; host < hosts.count(); ++host) {
    const std::vector<int>& ranks = hosts.ranks(host);
    for (std::size_t l = 0; l < of_local_rank.size(); ++l) {
      const std::size_t leader = ranks[l % ranks.size()];
      led[leader] += of_local_rank[l] - (l < ranks.size() ? own[leader] : 0);
    }
  }
  return led;
}

/// What a rank sends before slices are finished.
PlannedBytes partial_bytes(const SliceLoad::Elements& slices, int partials, int host_sums) {
  return {.inside_host = partials * bytes(slices.all - slices.own - slices.led),
          .between_hosts = host_sums * bytes(slices.led)};
}

PlannedBytes finished_bytes(std::int64_t own, const Hosts& hosts, int rank) {
  const std::size_t beside = hosts.ranks(hosts.host_of(rank)).size() - 1;
  return {.inside_host = beside * bytes(own), .between_hosts = (hosts.count() - 1) * bytes(own)};
}

PlannedBytes sum_of(const PlannedBytes& a, const PlannedBytes& b) {
  return {a.inside_host + b.inside_host, a.between_hosts + b.between_hosts};
}

}  // namespace

std::vector<SumLoad> sum_loads(int micro_batches, const MicroBatchAssignment& assignment, const Hosts& hosts) {
  const Tree tree(micro_batches);
  std::vector<SumLoad> loads(hosts.rank_count());
  std::vector<int> partials(hosts.count()), sums(partials);
  std::vector<std::vector<TreeNode>> roots(loads.size());
  for (int host = 0; host < hosts.count(); ++host) {
    const std::size_t h = host;
    std::vector<int> of_host;
    for (const int rank : hosts.ranks(host)) {
      const std::size_t r = rank;
      const std::vector<int>& own = assignment.micro_batches_of_rank[r];
      roots[r] = tree.maximal_subtrees(own);
      for (const TreeNode root : roots[r]) loads[r].roots.push_back(tree.size(root));
      of_host.insert(of_host.end(), own.begin(), own.end());
      partials[h] += static_cast<int>(loads[r].roots.size());
    }
    const std::vector<TreeNode> whole = tree.maximal_subtrees(of_host);
    sums[h] = whole.size();
    for (const int rank : hosts.ranks(host)) {
      const auto& own = roots[rank];
      loads[rank].made_sums = std::count_if(whole.begin(), whole.end(), [&](TreeNode sum) {
        return std::find(own.begin(), own.end(), sum) == own.end();
      });
    }
  }
  const int all = std::accumulate(sums.begin(), sums.end(), 0);
  for (std::size_t r = 0; r < loads.size(); ++r) {
    const std::size_t h = hosts.host_of(r);
    loads[r].read = partials[h] - static_cast<int>(loads[r].roots.size());
    loads[r].host_sums = sums[h];
    loads[r].others = all - sums[h];
  }
  return loads;
}

std::vector<SliceLoad> slice_loads(const GradientBuckets& buckets, const Hosts& hosts) {
  const std::size_t ranks = hosts.rank_count();
  std::vector<SliceLoad> loads(ranks);
  for (const bool scattered : {false, true}) {
    const auto kind = scattered ? &SliceLoad::scattered : &SliceLoad::gathered;
    std::int64_t all = 0;
    std::vector<std::int64_t> own(ranks), floats(ranks);
    for (int b = 0; b < buckets.count(); ++b) {
      if (buckets.at(b).scattered != scattered) continue;
      all += buckets.at(b).elements;
      for (const Slice& slice : slices_of(buckets, b, hosts.rank_count())) {
        own[slice.owner] += slice.size;
        floats[slice.owner] += whole_lines(slice.size);
      }
    }
    const auto led = led_of(own, hosts), led_floats = led_of(floats, hosts);
    for (std::size_t r = 0; r < ranks; ++r) loads[r].*kind = {all, own[r], led[r], floats[r], led_floats[r]};
  }
  return loads;
}

PlannedBytes planned_bytes_of(const SumLoad& sums, const SliceLoad& slices, const Hosts& hosts, int rank,
                              bool streamed) {
  const int roots = sums.roots.size();
  const int read = streamed ? std::accumulate(sums.roots.begin(), sums.roots.end(), 0) : roots;
  return sum_of(sum_of(partial_bytes(slices.gathered, roots, sums.host_sums),
                       partial_bytes(slices.scattered, read, sums.host_sums)),
                finished_bytes(slices.gathered.own, hosts, rank));
}

PlannedBytes gathered_bytes_of(const SliceLoad& slices, const Hosts& hosts, int rank, bool shared) {
  PlannedBytes bytes = finished_bytes(slices.scattered.own, hosts, rank);
  if (shared) bytes.inside_host = 0;
  return bytes;
}

}  // namespace lockstep::comm
