// What every kind of reducer has: the host's regions, the sums inside this rank, the scalars.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/reduce/accumulation_buffers.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/region.hpp"
#include "comm/reduce/scalars.hpp"
#include "comm/reduce/tree.hpp"
#include "comm/transport/host_memory.hpp"
#include "comm/transport/hosts.hpp"
#include "core/flight_recorder.hpp"
#include "core/trace.hpp"

namespace lockstep::comm {

class RankReducer : public GradientReducer {
 public:
  RankReducer(Communicator& communicator, BucketLayout layout, ReducerOptions options,
              std::unique_ptr<BufferMemory> memory = host_buffer_memory());
  [[nodiscard]] GradientBuffer buffer(int shard, int bucket) override { return sums_.buffer(shard, bucket); }
  [[nodiscard]] Scalars scalars(std::span<const double> values, int per_shard, std::uint32_t flags,
                                std::span<const double> rank_values) override;
  void trace(TraceRecorder* recorder) override { trace_ = recorder; }

 protected:
  /// The memory of this process, added to by the thread that asks for it.
  [[nodiscard]] static std::unique_ptr<BufferMemory> host_buffer_memory();
  /// To be called where an assignment is not the one before: what map_regions() has to know of it.
  void measure(const ShardAssignment& assignment);
  /// Whether map_regions() will map anew.
  [[nodiscard]] bool needs_room(int partials) const { return partials > room_ || most_shards_ > shard_room_; }
  /// Maps the regions anew if they have too little room. Collective, by the same rule on every rank. `slices`: by
  /// bucket; empty: without sums.
  void map_regions(int partials, const std::vector<int>& slices = {});
  /// sums_.use() has come before.
  void begin_sums(std::uint64_t step, const ShardAssignment& assignment,
                  const std::function<float*(int root, int bucket)>& root_memory);
  /// Roots in the own region.
  void begin_sums(std::uint64_t step, const ShardAssignment& assignment);

  [[nodiscard]] int rank() const { return communicator_.rank(); }
  [[nodiscard]] int ranks() const { return communicator_.size(); }
  [[nodiscard]] int buckets() const { return static_cast<int>(layout_.bucket_elements.size()); }
  [[nodiscard]] std::int64_t elements(int bucket) const {
    return layout_.bucket_elements[static_cast<std::size_t>(bucket)];
  }
  [[nodiscard]] std::int64_t all_elements() const;
  [[nodiscard]] const Region& own_region() const { return regions_[static_cast<std::size_t>(local_rank_)]; }
  [[nodiscard]] Operation operation(const char* name) const { return {name, step_, options_.timeout}; }

  Communicator& communicator_;
  std::shared_ptr<FlightRecorder> recorder_;  ///< never null
  BucketLayout layout_;
  ReducerOptions options_;
  Tree tree_;
  Hosts hosts_;
  int local_rank_;
  std::unique_ptr<HostMemory> memory_;
  std::vector<Region> regions_;  ///< by local rank
  int room_ = -1;                ///< partial sums that regions have room for
  int shard_room_ = 0;           ///< the same of shards, whose scalars a rank gives
  int most_shards_ = 0;          ///< that any rank has
  std::unique_ptr<BufferMemory> buffer_memory_;
  AccumulationBuffers sums_;
  ScalarGather scalar_gather_;
  ShardAssignment assignment_;
  std::uint64_t step_ = 0;
  double scalar_seconds_ = 0;
  TraceRecorder* trace_ = nullptr;
};

/// Exact, between ranks: partial sums go to the owners of their slices (all_reduce_cpu.cpp).
[[nodiscard]] std::unique_ptr<GradientReducer> make_cpu_all_reduce(Communicator& communicator, BucketLayout layout,
                                                                   ReducerOptions options);
/// One rank, or not exact: local sums, then the library's all-reduce (library_all_reduce.cpp).
[[nodiscard]] std::unique_ptr<GradientReducer> make_library_all_reduce(Communicator& communicator, BucketLayout layout,
                                                                       ReducerOptions options);

}  // namespace lockstep::comm
