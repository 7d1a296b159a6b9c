#include "comm/reduce/streamed_sums.hpp"

#include <algorithm>

#include "core/spans.hpp"
#include "core/trace.hpp"
#include "device/cpu/add.hpp"

namespace lockstep::comm {

namespace {

GradientBuckets buckets_of(const std::vector<StreamedSums::Handled>& handled) {
  GradientBuckets all;
  for (const StreamedSums::Handled& slice : handled) all.buckets.emplace_back().elements = slice.size;
  return all;
}

}  // namespace

StreamedSums::StreamedSums(Communicator& communicator, const GradientBuckets& buckets, const Hosts& hosts,
                           const ReducerOptions& options, const std::vector<Doorbell*>& doorbells,
                           std::vector<Handled> handled)
    : hosts_(hosts),
      rank_(communicator.rank()),
      local_ranks_(hosts.ranks(hosts.host_of(rank_))),
      tree_(buckets.micro_batches),
      rings_(communicator, buckets, doorbells, options.workers, options.open_elements, options.timeout),
      handled_(std::move(handled)),
      handled_of_(buckets.buckets.size()),
      memory_(host_buffer_memory()),
      sums_(buckets_of(handled_), *memory_) {
  for (std::size_t h = 0; h < handled_.size(); ++h) {
    handled_of_[handled_[h].bucket].push_back(h);
  }
}

// The most wait if the first micro-batch of each window comes last, wherever windows begin.
int StreamedSums::most_waiting(const MicroBatchAssignment& assignment, const Hosts& hosts, int rank, int workers) {
  const std::vector<int> order = expected_order(assignment, hosts.ranks(hosts.host_of(rank)));
  int micro_batches = 0;
  for (const auto& list : assignment.micro_batches_of_rank) micro_batches += static_cast<int>(list.size());
  const Tree tree(micro_batches);
  const MergePlan plan = tree_plan(tree, tree.maximal_subtrees(order));
  const std::size_t window = std::min(order.size(), static_cast<std::size_t>(std::max(1, workers)));
  int most = 0;
  for (std::size_t end = 1; end <= window; ++end) {  // of the first one
    std::vector<std::vector<int>> worst;
    for (std::size_t first = 0, last = end; first < order.size();
         first = last, last = std::min(order.size(), last + window)) {
      for (std::size_t i = last; i-- > first;) worst.push_back({order[i]});
    }
    most = std::max(most, AccumulationBuffers::most_waiting(plan, worst));
  }
  return most;
}

void StreamedSums::use(const MicroBatchAssignment& assignment, const std::vector<TreeNode>& subtrees) {
  assignment_ = assignment;
  const std::vector<int> order = expected_order(assignment, local_ranks_);
  order_.assign(tree_.leaves(), -1);
  for (std::size_t place = 0; place < order.size(); ++place) {
    order_[order[place]] = place;
  }
  window_ = std::max(1, rings_.host_workers());
  sums_.use(tree_plan(tree_, subtrees));
  const int waiting = most_waiting(assignment, hosts_, rank_, window_);
  for (std::size_t h = 0; h < handled_.size(); ++h) sums_.reserve(h, waiting);
  read_.assign(handled_of_.size(), std::vector<char>(order.size() + 1));  // the last one is never read
  first_unread_.assign(handled_of_.size(), 0);
  has_.assign(handled_of_.size(), std::vector<char>(subtrees.size()));
}

void StreamedSums::begin_step(std::uint64_t epoch, std::function<float*(int subtree, int h)> memory) {
  epoch_ = epoch;
  rings_.begin_step();
  for (auto& of_bucket : read_) std::fill(of_bucket.begin(), of_bucket.end(), char{0});
  for (auto& of_bucket : has_) std::fill(of_bucket.begin(), of_bucket.end(), char{0});
  std::fill(first_unread_.begin(), first_unread_.end(), std::size_t{0});
  sums_.begin(std::move(memory));
}

bool StreamedSums::advance(TraceRecorder* trace, std::uint64_t step) {
  return rings_.read_new(epoch_, [&](const GradientRings::Published& published) {
    if (!may_take(published)) return false;
    const auto start = Clock::now();
    const TraceScope span(trace, "add", step, kReduceTrack, published.bucket);
    add(published);
    seconds_adding_ += seconds_since(start);
    return true;
  });
}

bool StreamedSums::may_take(const GradientRings::Published& published) const {
  const std::size_t bucket = published.bucket;
  const std::size_t place = order_[published.micro_batch];
  return handled_of_[bucket].empty() || place < first_unread_[bucket] + window_;
}

void StreamedSums::add(const GradientRings::Published& published) {
  const std::size_t bucket = published.bucket;
  for (const int h : handled_of_[bucket]) {
    const Handled& slice = handled_[h];
    const float* const gradient = published.gradient + slice.first;
    const GradientBuffer to = sums_.buffer(published.micro_batch, h);
    if (to.add) {
      device::add(to.memory, gradient, to.memory, slice.size);
    } else {
      std::copy_n(gradient, slice.size, to.memory);
    }
    if (const auto subtree = sums_.ready(published.micro_batch, h)) has_[bucket][*subtree] = 1;
  }
  std::size_t& first = first_unread_[bucket];
  read_[bucket][order_[published.micro_batch]] = 1;
  while (read_[bucket][first] != 0) ++first;
}

std::pair<int, std::size_t> StreamedSums::missing() const {
  const std::vector<int>& buckets = rings_.buckets();
  std::pair<int, std::size_t> found{-1, 0};
  int earliest = 0;
  for (const int rank : local_ranks_) {
    const auto& micro_batches = assignment_.micro_batches_of_rank[rank];
    const auto place = [&](int micro_batch) { return order_[micro_batch]; };
    const auto unread = [&](int micro_batch, int bucket) { return read_[bucket][place(micro_batch)] == 0; };
    const auto first = std::find_if(micro_batches.begin(), micro_batches.end(),
                                    [&](int micro_batch) { return unread(micro_batch, buckets.back()); });
    if (first == micro_batches.end() || (found.first >= 0 && place(*first) > earliest)) continue;
    earliest = place(*first);
    found = {rank, 0};
    for (const int micro_batch : micro_batches) {
      found.second +=
          std::count_if(buckets.begin(), buckets.end(), [&](int bucket) { return unread(micro_batch, bucket); });
    }
  }
  return found;
}

}  // namespace lockstep::comm
