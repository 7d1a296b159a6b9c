// What the all-reduce on a GPU plans and allocates, and what it allocates as it is counted before a run.
#include <algorithm>
#include <bit>

#include "comm/reduce/all_reduce_gpu.hpp"

namespace lockstep::comm {

namespace {

/// The most elements of the sum that a rank keeps: all, or its slice of a scattered bucket.
std::int64_t sum_elements(const GradientBuckets& buckets, int ranks) {
  std::vector<std::int64_t> of_rank(ranks);
  for (int b = 0; b < buckets.count(); ++b) {
    if (buckets.at(b).scattered) {
      for (const Slice& slice : slices_of(buckets, b, ranks)) of_rank[slice.owner] += slice.size;
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
  return share.assignment.micro_batches_of_rank.at(share.rank);
}

GpuRounds own_slice(const ReducePlan& plan, int bucket) {
  const BucketPlan& of = plan.buckets[bucket];
  GpuRounds rounds;
  rounds.own.count = of.own_size();
  rounds.first = of.own < 0 ? 0 : of.at(of.own).first;
  return rounds;
}

/// Elements of the buckets that are not streamed, all together.
std::int64_t gathered_elements(const GradientBuckets& buckets) {
  std::int64_t elements = 0;
  for (const auto& bucket : buckets.buckets) elements += bucket.scattered ? 0 : bucket.elements;
  return elements;
}

}  // namespace

void GpuAllReduce::make_plan(const MicroBatchAssignment& assignment) {
  const std::vector<int>& mine = assignment.micro_batches_of_rank.at(rank());
  merge_plan_ =
      options_.exact ? tree_plan(tree_, tree_.maximal_subtrees(mine)) : chain_plan(buckets_.micro_batches, mine);
  own_roots_ = merge_plan_.roots;
  sums_.use(merge_plan_);
  const ReducePlan plan = reduce_plan(assignment, hosts_, buckets_, rank(), options_.streamed);
  rounds_.clear();
  traffic_.clear();
  for (int b = 0; b < bucket_count(); ++b) {
    rounds_.push_back(streams(b) ? own_slice(plan, b) : gpu_rounds(plan, hosts_, b));
    traffic_.push_back(bytes_of(plan, hosts_, b));
  }
  if (stream_) stream_->use(assignment);
  order_exchanges();
  make_memory();
}

void GpuAllReduce::order_exchanges() {
  const int waves = stream_ ? stream_->waves() : 1;
  exchanges_.clear();
  numbers_.clear();
  for (int wave = 0; wave < waves; ++wave) {
    for (int b = 0; b < bucket_count(); ++b) {
      const bool has = streams(b) || wave + 1 == waves;
      numbers_.push_back(has ? static_cast<int>(exchanges_.size()) : -1);
      if (has) exchanges_.push_back({wave, b});
    }
  }
}

// Memory only grows: it may be read until the previous step is released.
void GpuAllReduce::make_memory() {
  const std::size_t roots = std::max(own_roots_, 1);
  std::int64_t receive = stream_ ? stream_->plan().receive_elements(rank()) : 0;
  for (int b = 0; b < bucket_count(); ++b) {
    if (streams(b)) continue;
    auto& memory = roots_[b];
    while (memory.size() < roots) {
      memory.push_back(buffer_memory_->allocate(elements(b)));
      gpu_.wait(transport_stream_, gpu_memory().buffer(memory.back()).free);
    }
    receive = std::max(receive, rounds_[b].receive_elements);
  }
  if (!transport_ || !options_.exact) return;
  const auto block = [&](std::int64_t count) { return device::GpuBlock(gpu_, count * sizeof(float)); };
  for (int b = reduced_.size(); b < bucket_count(); ++b) {
    const bool scattered = buckets_.at(b).scattered;
    reduced_.push_back(block(scattered ? rounds_[b].own.count : elements(b)));
  }
  if (receive <= received_elements_) return;
  received_ = {};              // frees it before the larger one is allocated
  received_ = block(receive);  // finish() has waited for all uses of the previous block
  received_elements_ = receive;
}

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
  return (blocks * gradient + others) * sizeof(float);
}

std::size_t GpuAllReduce::bytes(const ReducerShare& share) {
  const std::vector<int>& mine = own_micro_batches(share);
  const int micro_batches = mine.size();
  if (!streams_any(share.buckets, share.options, share.hosts.rank_count()))
    return bytes(share.buckets, micro_batches, share.hosts.rank_count(), share.options.workers);
  const GpuStreamedSums::Plan streamed(share.buckets, share.assignment, share.hosts, share.rank);
  std::int64_t receive = streamed.receive_elements(share.rank);
  std::int64_t elements =
      GpuStreamedSums::ring_elements(share.buckets, share.options) + streamed.kept() * streamed.kept_elements;
  // Micro-batches are dealt in turn, so few of a rank are siblings: each may be a partial sum of its own.
  const int roots = Tree(share.buckets.micro_batches).maximal_subtrees(mine).size();
  const int blocks =
      std::max(roots, 1) + std::min(waiting_sums(micro_batches, share.options.workers), micro_batches - roots);
  elements += blocks * gathered_elements(share.buckets);
  const ReducePlan plan = reduce_plan(share.assignment, share.hosts, share.buckets, share.rank, true);
  for (int b = 0; b < share.buckets.count(); ++b) {
    const bool scattered = share.buckets.at(b).scattered;
    elements += scattered ? plan.buckets[b].own_size() : share.buckets.at(b).elements;
    if (!scattered) receive = std::max(receive, gpu_rounds(plan, share.hosts, b).receive_elements);
  }
  return (elements + receive) * sizeof(float);
}

int GpuAllReduce::max_micro_batches(const ReducerShare& share, std::size_t more) {
  const int own = own_micro_batches(share).size();
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
  const int beside = share.hosts.ranks(share.hosts.host_of(share.rank)).size();
  const int most_kept = std::min(all, waiting_sums(all, 1) + beside * workers);
  const auto bytes_of = [](std::int64_t elements) { return elements * sizeof(float); };
  const std::size_t kept = bytes_of(std::max(0, most_kept - streamed.kept()) * streamed.kept_elements);
  if (kept > more) return own;
  // Partial sums of gathered buckets, and those of others that arrive.
  const std::size_t each = bytes_of(2 * gathered_elements(share.buckets));
  return each == 0 ? all
                   : static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(all), own + (more - kept) / each));
}

}  // namespace lockstep::comm
