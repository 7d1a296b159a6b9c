// With one rank, the tree's root is the sum and nothing is sent. With several ranks and exact = false, the
// micro-batches of each rank are added in the order of its list, then the communicator's all-reduce adds the ranks, in
// its own order.
#include <algorithm>
#include <atomic>

#include "comm/reduce/rank_reducer.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

class LibraryAllReduce final : public RankReducer {
 public:
  using RankReducer::RankReducer;

  void begin_step(std::uint64_t step, const MicroBatchAssignment& assignment) override {
    const std::vector<int>& mine = assignment.micro_batches_of_rank.at(rank());
    step_ = step;
    if (assignment != assignment_) {
      measure(assignment);
      use(options_.exact ? tree_plan(tree_, tree_.maximal_subtrees(mine)) : chain_plan(buckets_.micro_batches, mine),
          assignment);
    }
    std::vector<RegionShape::Bucket> shape;
    for (const GradientBuckets::Bucket& bucket : buckets_.buckets) shape.push_back({.partial = bucket.elements});
    map_regions(1, shape);
    enter_step(step, assignment);
    sums_.begin([this](int root, int bucket) { return own_region().partial(root, bucket); });
    finished_ = mine.empty() ? bucket_count() : 0;
    if (!mine.empty()) return;
    for (int b = 0; b < bucket_count(); ++b) std::fill_n(own_region().partial(0, b), elements(b), 0.0F);
  }

  [[nodiscard]] GradientBuffer buffer(int micro_batch, int bucket) override {
    return sums_.buffer(micro_batch, bucket);
  }
  void ready(int micro_batch, int bucket) override { finished_ += sums_.ready(micro_batch, bucket) ? 1 : 0; }

  void finish() override {
    LOCKSTEP_CHECK(finished_ == bucket_count(), "finish() comes after ready() of every micro-batch and bucket");
    if (ranks() == 1) return;
    const auto start = Clock::now();
    const Operation all_reduce = operation("all_reduce_sum");
    const ActivityScope activity(recorder_.get(), all_reduce.name, step_);
    for (int b = 0; b < bucket_count(); ++b) {
      const TraceScope span(trace_, "all-reduce", step_, kBucketTrack, b);
      const std::size_t size = elements(b);
      communicator_.all_reduce_sum(std::span(own_region().partial(0, b), size), all_reduce);
      statistics_.network_bytes += size * sizeof(float);
      ++statistics_.partials_sent;
    }
    statistics_.seconds_waited += seconds_since(start);
  }

  std::span<const float> reduced(int bucket) const override {
    return {own_region().partial(0, bucket), static_cast<std::size_t>(elements(bucket))};
  }

  ReducerStatistics statistics() const override {
    ReducerStatistics result = statistics_;
    result.seconds_waited += scalar_seconds_;
    result.peak_elements = sums_.peak_pool_elements() + buckets_.elements();
    return result;
  }

 private:
  std::atomic<int> finished_{0};
  ReducerStatistics statistics_;
};

}  // namespace

std::unique_ptr<GradientReducer> make_library_all_reduce(Communicator& communicator, GradientBuckets buckets,
                                                         ReducerOptions options) {
  return std::make_unique<LibraryAllReduce>(communicator, std::move(buckets), options);
}

}  // namespace lockstep::comm
