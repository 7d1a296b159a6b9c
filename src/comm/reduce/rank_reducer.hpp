// What all reducers share: the host's regions, the sums inside this rank, the scalars, and the message tags.
#pragma once

#include <memory>
#include <vector>

#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/region.hpp"
#include "comm/reduce/scalars.hpp"
#include "comm/reduce/tree.hpp"
#include "comm/reduce/tree_sums.hpp"
#include "comm/transport/host_memory.hpp"
#include "comm/transport/topology.hpp"
#include "core/flight_recorder.hpp"
#include "core/trace.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

/// The upper half of the tags that callers of a communicator may use.
inline constexpr int kFirstReduceTag = 1 << 19;
inline constexpr int kTagsPerBucket = 64;
inline constexpr int kMaxBuckets = kFirstReduceTag / kTagsPerBucket - 1;
inline constexpr int kScalarTag = (1 << 20) - 1;

/// For a slice of the sender's partial sum number `root`.
[[nodiscard]] inline int partial_tag(int bucket, int root) {
  LOCKSTEP_CHECK(bucket < kMaxBuckets && root < kTagsPerBucket - 1, "too many buckets or partial sums for the tags");
  return kFirstReduceTag + bucket * kTagsPerBucket + root;
}

/// For the sender's reduced slice.
[[nodiscard]] inline int reduced_tag(int bucket) {
  return kFirstReduceTag + (bucket + 1) * kTagsPerBucket - 1;
}

class RankReducer : public GradientReducer {
 public:
  RankReducer(Communicator& communicator, GradientBuckets buckets, ReducerOptions options,
              std::unique_ptr<BufferMemory> memory = host_buffer_memory());
  [[nodiscard]] Scalars scalars(const OwnScalars& own) override;
  void trace(TraceRecorder* recorder) override { trace_ = recorder; }

 protected:
  /// Collective the first time; map_regions() does it, too.
  void map_doorbells();
  /// Call when the assignment has changed, before map_regions().
  void measure(const MicroBatchAssignment& assignment);
  /// What sums_ adds from the next step on, in host memory. Streamed buckets are not among them.
  void use(MergePlan plan, const MicroBatchAssignment& assignment);
  bool streams(int bucket) const { return options_.streamed && buckets_.at(bucket).scattered; }
  /// Whether map_regions() needs to map the regions again.
  bool needs_room(int partials) const { return partials > room_ || max_micro_batches_ > micro_batch_room_; }
  /// Maps the regions again if they are too small. Collective, by the same rule on every rank.
  void map_regions(int partials, const std::vector<RegionShape::Bucket>& buckets);
  /// Begins a step with this assignment.
  void enter_step(std::uint64_t step, const MicroBatchAssignment& assignment);

  int rank() const { return communicator_.rank(); }
  int ranks() const { return communicator_.size(); }
  int bucket_count() const { return buckets_.count(); }
  std::int64_t elements(int bucket) const { return buckets_.at(bucket).elements; }
  const Region& own_region() const { return regions_[local_rank_]; }
  Doorbell& doorbell() const { return *doorbells_[local_rank_]; }
  Operation operation(const char* name) const { return {name, step_, options_.timeout, nullptr, options_.watch}; }

  Communicator& communicator_;
  std::shared_ptr<FlightRecorder> recorder_;  ///< never null
  GradientBuckets buckets_;
  ReducerOptions options_;
  Tree tree_;
  Hosts hosts_;
  int local_rank_;
  std::unique_ptr<HostMemory> doorbell_memory_;  ///< stays when the regions are mapped again
  std::vector<Doorbell*> doorbells_;             ///< by local rank, as are the regions
  std::unique_ptr<HostMemory> memory_;
  std::vector<Region> regions_;
  int room_ = -1;              ///< number of partial sums that the regions have room for
  int micro_batch_room_ = 0;   ///< number of micro-batches, of one rank, whose scalars the regions have room for
  int max_micro_batches_ = 0;  ///< most micro-batches of any rank
  std::unique_ptr<BufferMemory> buffer_memory_;
  AccumulationBuffers sums_;
  ScalarGather scalar_gather_;
  MicroBatchAssignment assignment_;
  std::uint64_t step_ = 0;
  double scalar_seconds_ = 0;
  TraceRecorder* trace_ = nullptr;

 private:
  void keep_doorbells(std::unique_ptr<HostMemory> memory);
};

/// Exact, for several ranks.
[[nodiscard]] std::unique_ptr<GradientReducer> make_cpu_all_reduce(Communicator& communicator, GradientBuckets buckets,
                                                                   ReducerOptions options);
/// For one rank, or not exact: local sums, then the library's all-reduce.
[[nodiscard]] std::unique_ptr<GradientReducer> make_library_all_reduce(Communicator& communicator,
                                                                       GradientBuckets buckets, ReducerOptions options);

}  // namespace lockstep::comm
