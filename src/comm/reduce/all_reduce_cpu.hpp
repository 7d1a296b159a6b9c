// The exact all-reduce on hosts: CpuAllReduce.
//
// A rank publishes each of its partial sums (the roots of its maximal subtrees), bucket by bucket: peers of its
// host read it in its region. For an owner on another host the slice's leader here (comm/reduce/reduce_plan.hpp) adds
// its host's partial sums and sends it what they come to. The owner of a slice waits for the partial sums of its own
// host and the sums of the others, adds them in tree order and writes the result into its host's `sums`, which all
// ranks of the host read; to every other host it sends the result once, to its slice's leader there, which receives it
// straight into the `sums` there.
//
// Of a bucket that is scattered, a finished slice is read by its owner alone. The ranks of a host then wait until each
// slice has been added by its owner, or, where that is on another host, its host's sums by the leader: so here, too,
// nobody reads a rank's partial sums once it has finished.
//
// Why no buffer is overwritten while somebody reads it:
//  - A partial sum of step t is read by owners and leaders until all its slices are reduced. finish() of step t returns
//    only when all slices of all buckets are reduced and all own messages have left, so from then on nobody reads this
//    rank's partial sums, and buffer() of step t + 1 may write them. (What a leader sends of a peer's stands in its own
//    memory.)
//  - `sums` of step t are read until each rank of the host begins step t + 1, which it says by `begun`. Slices
//    of step t + 1 are written, and messages with slices are received, only after all ranks of the host have
//    begun it. (Ranks without shards publish nothing, so waiting for partial sums alone would not be enough.)
//  - Flags carry the step's number, and a rank is never more than one step ahead of a peer: to finish a step it
//    needs every peer's slices of that step. A rank with no slices at all could run ahead; but it waits for the
//    peers' slices too.
//
// Threads: workers publish; a progress thread adds slices while others still compute; in finish() the main
// thread takes its place, so that no hand-over costs time at the end. Both sleep on the region's doorbell.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/reduce/rank_reducer.hpp"
#include "comm/reduce/reduce_plan.hpp"
#include "comm/reduce/tree.hpp"

namespace lockstep::comm {

class CpuAllReduce final : public RankReducer {
 public:
  CpuAllReduce(Communicator& communicator, GradientBuckets buckets, ReducerOptions options);
  ~CpuAllReduce() override;
  CpuAllReduce(const CpuAllReduce&) = delete;
  CpuAllReduce& operator=(const CpuAllReduce&) = delete;
  void begin_step(std::uint64_t step, const ShardAssignment& assignment) override;
  [[nodiscard]] GradientBuffer buffer(int shard, int bucket) override;
  void ready(int shard, int bucket) override;
  void finish() override;
  [[nodiscard]] std::span<const float> reduced(int bucket) const override;
  [[nodiscard]] ReducerStatistics statistics() const override;
  /// One pass of the progress thread over everything that this rank waits for. Returns whether anything had come.
  /// Between begin_step() and finish(); for who measures it.
  bool advance_once();

 private:
  /// What this rank adds as an owner: a partial sum of its host, or another host's sum by the leader there.
  struct Operand {
    int rank = 0;
    int root = 0;
    AlignedBytes received;                             ///< of another host: my slice of each bucket
    std::vector<std::unique_ptr<Transfer>> transfers;  ///< of another host, by bucket
  };
  /// One of plan_.sums.host_sums: its slices for owners on other hosts.
  struct Gathered {
    Combiner combiner;
    AlignedBytes memory;  ///< slices, bucket by bucket
  };
  /// The slices of a Gathered of one bucket: they can be added and sent at the same time.
  struct GatherTask {
    int sum = 0;
    int bucket = 0;
    std::int64_t at = 0;  ///< of the first one in Gathered::memory, in elements; the others follow
  };
  /// Another host's slice of a bucket that this rank leads here: it sends its host's sum, and receives the result.
  struct Led {
    int bucket = 0;
    int number = 0;  ///< of the slice in its bucket
  };
  /// Which of led_ have come. Apart from the reducer, since a message may come when that is gone.
  struct Arrivals {
    std::mutex mutex;
    std::vector<int> of_led;
  };

  // Geometry
  [[nodiscard]] const BucketPlan& plan(int bucket) const { return plan_.buckets[static_cast<std::size_t>(bucket)]; }
  [[nodiscard]] const PlannedSlice& slice(const Led& led) const { return plan(led.bucket).at(led.number); }
  [[nodiscard]] bool local(int other) const { return hosts_.host_of(other) == own_host(); }
  [[nodiscard]] const Region& region_of(int other) const {
    return regions_[static_cast<std::size_t>(hosts_.local_rank(other))];
  }
  [[nodiscard]] int own_host() const { return hosts_.host_of(rank()); }
  [[nodiscard]] std::span<std::byte> bytes(float* first, std::int64_t count) const {
    return std::as_writable_bytes(std::span(first, static_cast<std::size_t>(count)));
  }
  void ring_peers() const {
    for (const Region& region : regions_) region.doorbell().ring();
  }

  // A step
  void lay_out_slices();
  void make_plan(const ShardAssignment& assignment);
  void make_operands();
  void make_gathered();
  void post_operands();
  void publish(int root, int bucket);
  void run_progress_thread();
  void park_progress_thread();
  void wait_for_slices();
  /// What keeps finish() waiting: whose part, and which.
  [[nodiscard]] std::pair<int, std::string> missing() const;

  // Progress; progress_mutex_ is held
  bool advance();
  bool open_sums();
  bool gather_host_sums();
  void gather(const GatherTask& task);
  void send(std::span<const std::byte> slice, int to, int tag);
  bool reduce_buckets();
  [[nodiscard]] bool published(int of, int root, int bucket) const {
    return region_of(of).partial_ready(root, bucket).load(std::memory_order_acquire) == epoch_;
  }
  [[nodiscard]] bool here(const Operand& operand, int bucket) const;
  void reduce(int bucket);
  bool take_received_slices();
  bool look_for_slices();
  void publish_slice(int bucket, int number);
  void publish_led(int bucket);
  /// What Region::slices_counted() is when the bucket is whole in this step.
  [[nodiscard]] std::uint64_t slices_until_whole(int bucket) const {
    return mapped_steps_ * plan(bucket).slices.size();
  }
  void trace_whole_bucket(int bucket);

  ReducePlan plan_;
  std::vector<int> slice_counts_;           ///< by bucket
  std::vector<Led> led_;                    ///< by bucket
  std::vector<std::int64_t> own_slice_at_;  ///< by bucket: in Operand::received, in elements
  std::int64_t own_slices_ = 0;             ///< elements of all own slices, each from a cache line on
  std::vector<std::uint64_t> given_bytes_;  ///< by bucket: of a partial sum, what peers of the host read

  Combiner combiner_;
  std::vector<Operand> operands_;
  std::vector<Gathered> gathered_;
  std::vector<GatherTask> gather_tasks_;

  std::uint64_t epoch_ = 0;         ///< steps begun; what flags are set to
  std::uint64_t mapped_steps_ = 0;  ///< of these, since the regions were mapped: how far slices are counted
  std::atomic<int> published_{0};
  std::mutex published_mutex_;
  std::vector<double> published_at_;  ///< by bucket, while tracing; under published_mutex_

  mutable std::mutex progress_mutex_;
  std::condition_variable progress_changed_;
  bool running_ = false, stop_ = false;  ///< the progress thread's; under progress_mutex_
  bool parked_ = false;                  ///< it does not touch the regions
  std::exception_ptr error_;             ///< of the progress thread
  bool sums_open_ = false;
  std::vector<int> to_gather_;             ///< of gather_tasks_
  std::vector<std::size_t> to_gather_of_;  ///< by bucket: how many of these
  std::vector<std::unique_ptr<Transfer>> sends_;
  std::vector<int> to_reduce_;                       ///< buckets
  std::vector<std::size_t> seen_;                    ///< by bucket: how many of operands_ are known to be here
  std::vector<std::unique_ptr<Transfer>> receives_;  ///< by led_
  std::shared_ptr<Arrivals> arrivals_ = std::make_shared<Arrivals>();
  std::vector<int> arrived_;    ///< taken from arrivals_, not yet published to the host
  std::size_t to_receive_ = 0;  ///< of led_, not yet published
  std::vector<int> to_see_;     ///< buckets that are not whole
  std::vector<const float*> sources_;

  std::atomic<std::uint64_t> shared_bytes_{0}, network_bytes_{0}, partials_sent_{0};
  double seconds_waited_ = 0, seconds_reducing_ = 0;
  std::thread progress_thread_;
};

}  // namespace lockstep::comm
