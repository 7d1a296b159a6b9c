// The exact all-reduce on hosts: CpuAllReduce.
//
// A rank publishes each of its partial sums (the roots of its maximal subtrees), bucket by bucket: peers on its host
// read it in its region. For an owner on another host, the slice's leader on this host (comm/reduce/reduce_plan.hpp)
// adds its host's partial sums and sends the owner the result. The owner of a slice waits for the partial sums of its
// own host and the sums of the other hosts, adds them in tree order and writes the result into its host's `sums`, which
// all ranks of the host read; it sends the result once to every other host, to its slice's leader there, which receives
// it directly into the `sums` of that host.
//
// A finished slice of a scattered bucket is read only by its owner. The ranks of a host then wait until each slice has
// been added by its owner or, if that is on another host, its host's sums have been added by the leader: so here, too,
// nobody reads a rank's partial sums once it has finished.
//
// Why no buffer is overwritten while it is still being read:
//  - A partial sum of step t is read by owners and leaders until all its slices are reduced. finish() of step t returns
//    only when all slices of all buckets are reduced and all own messages have left, so from then on nobody reads this
//    rank's partial sums, and buffer() of step t + 1 may overwrite them. (A leader sends its peers' sums from its own
//    memory.)
//  - `sums` of step t are read until each rank of the host begins step t + 1, which it announces in `begun`. Slices of
//    step t + 1 are written, and messages with slices are received, only after all ranks of the host have begun it.
//    (Ranks without micro-batches publish nothing, so waiting for partial sums alone would not be enough.)
//  - Flags contain the step's number, and a rank is never more than one step ahead of a peer: to finish a step it needs
//    every peer's slices of that step. A rank without slices of its own waits for the peers' slices, too.
//
// Threads: workers publish; a progress thread adds slices while others still compute; in finish() the main thread takes
// its place, so that no hand-over costs time at the end. Both sleep on the region's doorbell.
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
  void begin_step(std::uint64_t step, const MicroBatchAssignment& assignment) override;
  [[nodiscard]] GradientBuffer buffer(int micro_batch, int bucket) override;
  void ready(int micro_batch, int bucket) override;
  void finish() override;
  [[nodiscard]] std::span<const float> reduced(int bucket) const override;
  [[nodiscard]] ReducerStatistics statistics() const override;
  /// One pass of the progress thread over everything that this rank waits for, between begin_step() and finish().
  /// Returns whether anything had arrived. Public for measurements.
  bool advance_once();

 private:
  /// What this rank adds as an owner: a partial sum of its own host, or another host's sum, sent by the leader there.
  struct Operand {
    int rank = 0;
    int root = 0;
    AlignedBytes received;                             ///< from another host: this rank's slice of each bucket
    std::vector<std::unique_ptr<Transfer>> transfers;  ///< from another host, by bucket
  };
  /// A sum of plan_.sums.host_sums: its slices for owners on other hosts.
  struct Gathered {
    Combiner combiner;
    AlignedBytes memory;  ///< slices, bucket by bucket
  };
  /// The slices of one bucket of a Gathered: they can be added and sent at the same time.
  struct GatherTask {
    int sum = 0;
    int bucket = 0;
    std::int64_t at = 0;  ///< offset of the first one in Gathered::memory, in elements; the others follow
  };
  /// A slice owned on another host that this rank leads on this host: it sends its host's sum, and receives the result.
  struct Led {
    int bucket = 0;
    int number = 0;  ///< of the slice in its bucket
  };
  /// Which of led_ have arrived. Outlives the reducer, since a message may arrive after that is destroyed.
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
  void make_plan(const MicroBatchAssignment& assignment);
  void make_operands();
  void make_gathered();
  void post_operands();
  void publish(int root, int bucket);
  void run_progress_thread();
  void park_progress_thread();
  void wait_for_slices();
  /// What finish() is waiting for: the rank, and what is missing from it.
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
  /// The value of Region::slices_counted() when the bucket is whole in this step.
  [[nodiscard]] std::uint64_t slices_until_whole(int bucket) const {
    return mapped_steps_ * plan(bucket).slices.size();
  }
  void trace_whole_bucket(int bucket);

  ReducePlan plan_;
  std::vector<int> slice_counts_;           ///< by bucket
  std::vector<Led> led_;                    ///< ordered by bucket
  std::vector<std::int64_t> own_slice_at_;  ///< by bucket: in Operand::received, in elements
  std::int64_t own_slices_ = 0;             ///< elements of all own slices, each starting on a cache line
  std::vector<std::uint64_t> given_bytes_;  ///< by bucket: bytes of a partial sum that peers on the host read

  Combiner combiner_;
  std::vector<Operand> operands_;
  std::vector<Gathered> gathered_;
  std::vector<GatherTask> gather_tasks_;

  std::uint64_t epoch_ = 0;         ///< steps begun; the value that flags are set to
  std::uint64_t mapped_steps_ = 0;  ///< steps since the regions were mapped, i.e. since slices_counted() was 0
  std::atomic<int> published_{0};
  std::mutex published_mutex_;
  std::vector<double> published_at_;  ///< by bucket, while tracing; under published_mutex_

  mutable std::mutex progress_mutex_;
  std::condition_variable progress_changed_;
  bool running_ = false, stop_ = false;  ///< of the progress thread; under progress_mutex_
  bool parked_ = false;                  ///< the progress thread does not touch the regions
  std::exception_ptr error_;             ///< of the progress thread
  bool sums_open_ = false;
  std::vector<int> to_gather_;             ///< indices into gather_tasks_
  std::vector<std::size_t> to_gather_of_;  ///< by bucket: how many of them are left
  std::vector<std::unique_ptr<Transfer>> sends_;
  std::vector<int> to_reduce_;                       ///< buckets, not yet reduced
  std::vector<std::size_t> seen_;                    ///< by bucket: how many of operands_ are known to have arrived
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
