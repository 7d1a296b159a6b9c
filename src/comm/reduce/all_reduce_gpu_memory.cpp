// What the all-reduce on a GPU allocates there, as it is counted before a run.
#include <algorithm>
#include <bit>

#include "comm/reduce/all_reduce_gpu.hpp"

namespace lockstep::comm {

namespace {

/// The most elements of the sum that a rank keeps: all, or its slice of a scattered bucket.
std::int64_t sum_elements(const GradientBuckets& buckets, int ranks) {
  std::vector<std::int64_t> of_rank(static_cast<std::size_t>(ranks));
  for (int b = 0; b < buckets.count(); ++b) {
    if (buckets.at(b).scattered) {
      for (const Slice& slice : slices_of(buckets, b, ranks))
        of_rank[static_cast<std::size_t>(slice.owner)] += slice.size;
    } else {
      for (std::int64_t& elements : of_rank) elements += buckets.at(b).elements;
    }
  }
  return *std::max_element(of_rank.begin(), of_rank.end());
}

/// Sums that wait for their siblings: besides the workers' current micro-batches, at most one per level and worker.
int waiting_sums(int micro_batches, int workers) {
  const int levels = std::bit_width(static_cast<unsigned>(std::max(micro_batches - 1, 0)));
  return std::clamp(micro_batches - 1, 0, workers * (1 + levels));
}

const std::vector<int>& own_micro_batches(const ReducerShare& share) {
  return share.assignment.micro_batches_of_rank.at(static_cast<std::size_t>(share.rank));
}

/// Elements of the buckets that are not streamed, all together.
std::int64_t gathered_elements(const GradientBuckets& buckets) {
  std::int64_t elements = 0;
  for (const auto& bucket : buckets.buckets) elements += bucket.scattered ? 0 : bucket.elements;
  return elements;
}

}  // namespace

bool GpuAllReduce::streams_any(const GradientBuckets& buckets, const ReducerOptions& options, int ranks) {
  return options.streamed && options.exact && ranks > 1 &&
         std::any_of(buckets.buckets.begin(), buckets.buckets.end(), [](const auto& of) { return of.scattered; });
}

std::size_t GpuAllReduce::bytes(const GradientBuckets& buckets, int micro_batches, int ranks, int workers) {
  const std::int64_t gradient = buckets.elements(), largest = buckets.max_elements();
  // Memory is not freed when a rank's share shrinks, so this is the largest number of roots for up to `count`
  // micro-batches.
  const auto max_roots = [&](int count) {
    return ranks == 1 ? 1 : std::max(1, static_cast<int>(std::bit_width(static_cast<unsigned>(count) + 1)) - 1);
  };
  const std::int64_t blocks = max_roots(micro_batches) + waiting_sums(micro_batches, workers);
  // The sum, and the receive memory for one bucket: this rank's slices (whole chunks each) of the partial sums of its
  // host's ranks, then of all hosts.
  const std::int64_t slices = std::min(ranks * largest, largest + ranks * kChunkElements);
  const std::int64_t others =
      ranks > 1 ? sum_elements(buckets, ranks) + slices * 2 * max_roots(buckets.micro_batches) : 0;
  return static_cast<std::size_t>(blocks * gradient + others) * sizeof(float);
}

std::size_t GpuAllReduce::bytes(const ReducerShare& share) {
  const std::vector<int>& mine = own_micro_batches(share);
  const auto micro_batches = static_cast<int>(mine.size());
  if (!streams_any(share.buckets, share.options, share.hosts.rank_count()))
    return bytes(share.buckets, micro_batches, share.hosts.rank_count(), share.options.workers);
  const GpuStreamedSums::Plan streamed(share.buckets, share.assignment, share.hosts, share.rank);
  std::int64_t receive = streamed.receive_elements(share.rank);
  std::int64_t elements =
      GpuStreamedSums::ring_elements(share.buckets, share.options) + streamed.kept() * streamed.kept_elements;
  // Micro-batches are dealt in turn, so few of a rank are siblings: each may be a partial sum of its own.
  const auto roots = static_cast<int>(Tree(share.buckets.micro_batches).maximal_subtrees(mine).size());
  const int blocks =
      std::max(roots, 1) + std::min(waiting_sums(micro_batches, share.options.workers), micro_batches - roots);
  elements += blocks * gathered_elements(share.buckets);
  const ReducePlan plan = reduce_plan(share.assignment, share.hosts, share.buckets, share.rank, true);
  for (int b = 0; b < share.buckets.count(); ++b) {
    const bool scattered = share.buckets.at(b).scattered;
    elements += scattered ? plan.buckets[static_cast<std::size_t>(b)].own_size() : share.buckets.at(b).elements;
    if (!scattered) receive = std::max(receive, gpu_rounds(plan, share.hosts, b).receive_elements);
  }
  return static_cast<std::size_t>(elements + receive) * sizeof(float);
}

int GpuAllReduce::max_micro_batches(const ReducerShare& share, std::size_t more) {
  const auto own = static_cast<int>(own_micro_batches(share).size());
  const int workers = share.options.workers;
  int max = own;
  if (!streams_any(share.buckets, share.options, share.hosts.rank_count())) {
    const int ranks = share.hosts.rank_count();
    const std::size_t room = bytes(share.buckets, own, ranks, workers) + more;
    while (max < share.buckets.micro_batches && bytes(share.buckets, max + 1, ranks, workers) <= room) ++max;
    return max;
  }
  // With other shares more sums may wait: of each rank of the host, those of a wave.
  const GpuStreamedSums::Plan streamed(share.buckets, share.assignment, share.hosts, share.rank);
  const int all = share.buckets.micro_batches;
  const auto beside = static_cast<int>(share.hosts.ranks(share.hosts.host_of(share.rank)).size());
  const int most_kept = std::min(all, waiting_sums(all, 1) + beside * workers);
  const auto bytes_of = [](std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); };
  const std::size_t kept = bytes_of(std::max(0, most_kept - streamed.kept()) * streamed.kept_elements);
  if (kept > more) return own;
  // Partial sums of gathered buckets, and those of others that arrive.
  const std::size_t each = bytes_of(2 * gathered_elements(share.buckets));
  return each == 0 ? all
                   : static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(all),
                                                            static_cast<std::size_t>(own) + (more - kept) / each));
}

}  // namespace lockstep::comm
