// The exact all-reduce on hosts: CpuAllReduce, a reduce-scatter in the order of the tree, and an all-gather of the
// buckets that are not scattered. Both are led once per host (comm/reduce/reduce_plan.hpp).
//
// What a rank's peers on its host read in shared memory are partial sums: those of the rank's maximal subtrees, bucket
// by bucket; or, of scattered buckets where no rank shall hold a whole gradient (ReducerOptions::streamed), the
// gradients of single micro-batches, from which each of them makes its host's sums (StreamedSums). For an owner on
// another host, the slice's leader on this host sends it the host's sums. The owner of a slice waits for the sums of
// its own host and of the other hosts, and adds them in tree order. The result stays with it if the bucket is
// scattered; else it goes into its host's `sums`, which all ranks of the host read, and once to every other host, to
// its slice's leader there, which receives it directly into the `sums` of that host.
//
// Why no buffer is overwritten while it is still being read (for rings, see GradientRings):
//  - A partial sum of step t is read by owners and leaders until all its slices are reduced: by their owners or, if
//    these are on other hosts, by the leaders who have added the host's sums. finish() of step t returns only when that
//    is so for all buckets and all own messages have left, so from then on nobody reads this rank's partial sums, and
//    buffer() of step t + 1 may overwrite them. (A leader sends its peers' sums from its own memory.)
//  - `sums` of step t are read until each rank of the host begins step t + 1, which it announces in `begun`. Slices of
//    step t + 1 are written, and messages with slices are received, only after all ranks of the host have begun it.
//    (Ranks without micro-batches publish nothing, so waiting for partial sums alone would not be enough.)
//  - Flags contain the step's number, and a rank is never more than one step ahead of a peer: to finish a step it needs
//    every peer's slices of that step. A rank without slices of its own waits for the peers' slices, too.
//
// Threads: workers publish; a progress thread adds slices while others still compute; in finish() the main thread takes
// its place, so that no hand-over costs time at the end. Both sleep on the rank's doorbell.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/reduce/rank_loads.hpp"
#include "comm/reduce/rank_reducer.hpp"
#include "comm/reduce/reduce_plan.hpp"
#include "comm/reduce/streamed_sums.hpp"
#include "comm/reduce/tree.hpp"
#include "core/ran_time.hpp"

namespace lockstep::comm {

class CpuAllReduce final : public RankReducer {
 public:
  CpuAllReduce(Communicator& communicator, GradientBuckets buckets, ReducerOptions options);
  ~CpuAllReduce() override;
  CpuAllReduce(const CpuAllReduce&) = delete;
  CpuAllReduce& operator=(const CpuAllReduce&) = delete;
  void begin_step(std::uint64_t step, const MicroBatchAssignment& assignment) override;
  /// For each micro-batch, streamed buckets must come in ascending order, as must calls of ready(); waits for room.
  [[nodiscard]] GradientBuffer buffer(int micro_batch, int bucket) override;
  void ready(int micro_batch, int bucket) override;
  void finish() override;
  std::span<const float> reduced(int bucket) const override;
  ReducerStatistics statistics() const override;
  /// What a rank's memory follows from.
  struct Load {
    const GradientBuckets& buckets;
    const SumLoad& sums;
    const SliceLoad& slices;
    int hosts = 1;
    bool streamed = false;
    int merging = 0;              ///< AccumulationBuffers::most_waiting() of its micro-batches
    int streaming = 0;            ///< StreamedSums::most_waiting()
    std::int64_t host_rings = 0;  ///< floats of all rings of its host (GradientRings::elements())
  };
  struct Bytes {
    std::int64_t own = 0;      ///< of its sums, besides
    std::int64_t waiting = 0;  ///< sums that wait for their siblings: what has been taken for them is kept
    std::int64_t read = 0;     ///< of partial sums of other ranks of its host, which count as memory of both
    std::int64_t of_host = 0;  ///< of rings and finished sums, which the host has once
  };
  [[nodiscard]] static Bytes bytes(const Load& load);

  /// One pass of the progress thread over everything that this rank waits for, between begin_step() and finish().
  /// Returns whether anything had arrived. Public for measurements.
  bool advance_once();

 private:
  /// What is added for slices of one kind of bucket; partial sums of streamed ones are their host's sums.
  struct Sums {
    SumPlan plan;
    Combiner whole;                 ///< of plan.additions
    std::vector<Combiner> of_host;  ///< by host sum
  };
  /// Another host's sum that this rank adds as an owner, sent by the leader there.
  struct Received {
    int leader = 0;
    int number = 0;
    AlignedBytes memory;                               ///< this rank's slice of each bucket
    std::vector<std::unique_ptr<Transfer>> transfers;  ///< by bucket
  };
  /// The slices of one bucket for owners on other hosts: this sum of the host can be added and sent at the same time.
  struct GatherTask {
    int sum = 0;
    int bucket = 0;
  };
  struct SliceName {
    int bucket = 0;
    int number = 0;  ///< in its bucket
  };
  /// Which of led_ have arrived. Outlives the reducer, since a message may arrive after that is destroyed.
  struct Arrivals {
    std::mutex mutex;
    std::vector<int> of_led;
  };

  // Geometry
  const BucketPlan& plan(int bucket) const { return plans_[bucket]; }
  [[nodiscard]] Sums& sums_of(int bucket) { return streams(bucket) ? streamed_ : merged_; }
  const SumPlan& sum_plan(int bucket) const { return streams(bucket) ? streamed_.plan : merged_.plan; }
  const HostSum& host_sum(const GatherTask& task) const { return sum_plan(task.bucket).host_sums[task.sum]; }
  bool local(int other) const { return hosts_.host_of(other) == own_host(); }
  const Region& region_of(int other) const { return regions_[hosts_.local_rank(other)]; }
  int own_host() const { return hosts_.host_of(rank()); }
  [[nodiscard]] static float* floats(const AlignedBytes& memory, std::int64_t at) {
    return reinterpret_cast<float*>(memory.data()) + at;
  }
  [[nodiscard]] static std::span<std::byte> bytes(float* first, std::int64_t count) {
    return std::as_writable_bytes(std::span(first, static_cast<std::size_t>(count)));
  }
  void ring_peers() const {
    for (Doorbell* const doorbell : doorbells_) doorbell->ring();
  }
  /// The first element of the bucket's sum; of a scattered bucket, only the own slice is there.
  float* sum(int bucket) const;
  /// In host_sums_: slice `number` of the bucket.
  std::int64_t place(int bucket, int number) const { return places_[bucket][number]; }

  // A step
  void lay_out();
  void lay_out_handled(int bucket);
  void make_plan(const MicroBatchAssignment& assignment);
  void post_received();
  void note_published(int bucket);
  void count_published(int bucket);
  void run_progress_thread();
  void wait_for_slices();
  void check_room(int micro_batch, Clock::time_point start, RanTime& ran);
  [[noreturn]] void give_up(int peer, const std::string& what, Clock::time_point since) const;

  // Progress; progress_mutex_ is held
  bool advance();
  /// What this rank is waiting for: the rank, and what is missing from it.
  std::pair<int, std::string> missing() const;
  std::pair<int, std::string> missing_slice() const;
  bool open_sums();
  bool gather_host_sums();
  void gather(const GatherTask& task);
  void send(std::span<const std::byte> slice, int to, int tag);
  bool reduce_buckets();
  bool here(const Partial& partial, int bucket) const;
  const float* memory_of(const Partial& partial, int bucket, int number) const;
  /// Where the sum of a streamed bucket's slice is made.
  float* streamed_sum(int subtree, int bucket, int number) const;
  void reduce(int bucket);
  bool take_received_slices();
  bool look_for_slices();
  void publish_slice(int bucket, int number);
  void publish_led(int bucket);
  bool is_whole(int bucket) const;
  /// The value of Region::slices_counted() when the bucket is whole in this step.
  std::uint64_t slices_until_whole(int bucket) const { return mapped_steps_ * plan(bucket).slices.size(); }
  void trace_whole_bucket(int bucket);

  std::vector<BucketPlan> plans_;
  std::vector<RegionShape::Bucket> shape_;
  std::vector<SliceName> led_;        ///< in gathered buckets, for owners on other hosts; ordered by bucket
  std::vector<std::int64_t> own_at_;  ///< by bucket: in Received::memory
  std::int64_t own_floats_ = 0;       ///< in all own slices, each starting on a cache line
  std::vector<std::vector<std::int64_t>> places_;  ///< by bucket and slice; -1: not in host_sums_
  std::int64_t host_sum_floats_ = 0;
  std::vector<std::int64_t> starts_;        ///< by scattered bucket: in scattered_
  AlignedBytes scattered_;                  ///< only this rank's own slices are touched
  std::vector<std::uint64_t> given_bytes_;  ///< by bucket: of a partial sum that peers on the host read
  std::vector<SliceName> streamed_slices_;  ///< as StreamedSums::Handled
  std::unique_ptr<StreamedSums> stream_;    ///< null: no bucket is streamed

  Sums merged_, streamed_;
  std::vector<AlignedBytes> host_sums_;
  std::vector<Received> received_;
  std::vector<GatherTask> gather_tasks_;

  std::uint64_t epoch_ = 0;         ///< steps begun; the value that flags are set to
  std::uint64_t mapped_steps_ = 0;  ///< steps since the regions were mapped, i.e. since slices_counted() was 0
  std::size_t to_publish_ = 0;
  std::atomic<std::size_t> published_{0};
  std::mutex published_mutex_;
  std::vector<double> published_at_;  ///< by bucket, while tracing; under published_mutex_

  mutable std::mutex progress_mutex_;
  std::condition_variable progress_changed_;
  bool running_ = false, stop_ = false;  ///< of the progress thread; under progress_mutex_, as is what follows
  std::exception_ptr error_;             ///< of the progress thread
  Clock::time_point last_progress_;
  bool sums_open_ = false;
  std::vector<int> to_gather_;             ///< indices into gather_tasks_
  std::vector<std::size_t> to_gather_of_;  ///< by bucket: how many of them are left
  std::vector<std::unique_ptr<Transfer>> sends_;
  std::vector<int> to_reduce_;                       ///< buckets, not yet reduced
  std::vector<char> reduced_;                        ///< by bucket
  std::vector<std::size_t> seen_;                    ///< by bucket: how many of the sums are known to have arrived
  std::vector<std::unique_ptr<Transfer>> receives_;  ///< as led_
  std::shared_ptr<Arrivals> arrivals_ = std::make_shared<Arrivals>();
  std::vector<int> arrived_;    ///< taken from arrivals_, but not yet published to the host
  std::size_t to_receive_ = 0;  ///< how many of led_ are not yet published
  std::vector<int> to_see_;     ///< buckets that are not yet whole
  std::vector<const float*> sources_;

  std::atomic<std::uint64_t> shared_bytes_{0}, network_bytes_{0}, partials_sent_{0};
  double seconds_waited_ = 0, seconds_reducing_ = 0;
  std::thread progress_thread_;
};

}  // namespace lockstep::comm
