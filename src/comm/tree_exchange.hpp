// The exact exchange between ranks.
//
// A rank publishes each of its partial sums (the roots of its maximal subtrees), bucket by bucket: peers of its
// host read it in its region, owners on other hosts are sent their slice of it. The owner of a slice waits for
// the partial sums of all ranks, adds them in tree order and writes the result into its host's `sums`, which
// all ranks of the host read; to every other host it sends the result once, to one rank of that host, which
// receives it straight into the `sums` there.
//
// Why no buffer is overwritten while somebody reads it:
//  - A partial sum of step t is read by owners until they have reduced it. finish() of step t returns only when
//    all slices of all buckets are reduced and all own messages have left, so from then on nobody reads this
//    rank's partial sums, and leaf() of step t + 1 may write them.
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
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/combiner.hpp"
#include "comm/rank_exchange.hpp"

namespace lockstep::comm {

class TreeExchange final : public RankExchange {
 public:
  TreeExchange(Communicator& communicator, ExchangeLayout layout, ExchangeOptions options);
  ~TreeExchange() override;
  TreeExchange(const TreeExchange&) = delete;
  TreeExchange& operator=(const TreeExchange&) = delete;
  void begin_step(std::uint64_t step, const Assignment& assignment) override;
  void ready(int shard, int bucket) override;
  void finish() override;
  [[nodiscard]] std::span<const float> reduced(int bucket) const override;
  [[nodiscard]] ExchangeStatistics statistics() const override;

 private:
  /// A partial sum of some rank, and what this rank knows of it as an owner.
  struct Partial {
    int rank = 0;
    int root = 0;
    AlignedBytes received;                             ///< of another host: my slice of each bucket
    std::vector<std::unique_ptr<Transfer>> transfers;  ///< of another host, by bucket
  };
  /// Somebody's reduced slice of a bucket.
  struct Slice {
    int bucket = 0;
    int owner = 0;
    std::unique_ptr<Transfer> transfer;  ///< where this rank receives it for its host
  };

  // Geometry
  [[nodiscard]] std::int64_t slice_start(int bucket, int owner) const {
    return bounds_[static_cast<std::size_t>(bucket)][static_cast<std::size_t>(owner)];
  }
  [[nodiscard]] std::int64_t slice_size(int bucket, int owner) const {
    return slice_start(bucket, owner + 1) - slice_start(bucket, owner);
  }
  [[nodiscard]] bool local(int other) const { return communicator_.topology().same_host(rank(), other); }
  [[nodiscard]] const Region& region_of(int other) const {
    return regions_[static_cast<std::size_t>(communicator_.topology().local_rank(other))];
  }
  /// The rank of a host that receives an owner's slices.
  [[nodiscard]] int receiver(int host, int owner) const {
    const auto& ranks_there = ranks_of_host_[static_cast<std::size_t>(host)];
    return ranks_there[static_cast<std::size_t>(owner) % ranks_there.size()];
  }
  [[nodiscard]] int own_host() const { return communicator_.topology().host_of[static_cast<std::size_t>(rank())]; }
  [[nodiscard]] std::span<std::byte> bytes(float* first, std::int64_t count) const {
    return std::as_writable_bytes(std::span(first, static_cast<std::size_t>(count)));
  }
  void ring_peers() const {
    for (const Region& region : regions_) region.doorbell().ring();
  }

  // A step
  void make_plan(const Assignment& assignment);
  void post_partials();
  void publish(int root, int bucket);
  void run_progress_thread();
  void park_progress_thread();
  void wait_for_slices();
  /// What keeps finish() waiting: whose part, and which.
  [[nodiscard]] std::pair<int, std::string> missing() const;

  // Progress; progress_mutex_ is held
  bool advance();
  bool open_sums();
  bool reduce_buckets();
  [[nodiscard]] bool here(const Partial& partial, int bucket) const;
  void reduce(int bucket);
  bool take_received_slices();
  bool look_for_slices();
  void trace_whole_buckets();

  std::vector<std::vector<std::int64_t>> bounds_;  ///< by bucket: slices
  std::vector<std::int64_t> own_slice_start_;      ///< by bucket: in Partial::received, in elements
  std::int64_t own_slices_ = 0;                    ///< elements of all own slices, each from a cache line on
  std::vector<std::vector<int>> ranks_of_host_;

  MergePlan merge_plan_;
  Combiner combiner_;
  std::vector<Partial> partials_;
  int own_roots_ = 0, most_roots_ = 0;

  std::uint64_t epoch_ = 0;  ///< steps begun; what flags are set to
  std::atomic<int> published_{0};
  std::mutex sends_mutex_;
  std::vector<std::unique_ptr<Transfer>> sends_;
  std::vector<double> published_at_;  ///< by bucket, while tracing; under sends_mutex_; -1: it is told

  mutable std::mutex progress_mutex_;
  std::condition_variable progress_changed_;
  bool running_ = false, stop_ = false;  ///< the progress thread's; under progress_mutex_
  bool parked_ = false;                  ///< it does not touch the regions
  std::exception_ptr error_;             ///< of the progress thread
  bool sums_open_ = false;
  std::vector<int> to_reduce_;     ///< buckets
  std::vector<std::size_t> seen_;  ///< by bucket: how many of partials_ are known to be here
  std::vector<Slice> to_receive_;
  std::vector<Slice> to_see_;
  std::vector<const float*> sources_;

  std::atomic<std::uint64_t> shared_bytes_{0}, network_bytes_{0}, partials_sent_{0};
  double seconds_waited_ = 0, seconds_reducing_ = 0;
  std::thread progress_thread_;
};

}  // namespace lockstep::comm
