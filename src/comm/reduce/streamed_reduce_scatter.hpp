// StreamedReduceScatter: a reduce-scatter in which no rank holds a whole gradient. A worker writes the gradient of a
// micro-batch, bucket by bucket, into a ring buffer of its own in the host's memory; every rank of the host immediately
// adds its slices of a bucket to its sums; when all have, that part of the ring is free again. A worker that gets too
// far ahead of them waits.
//
// A rank keeps only slices of the sums: its own, and those that it leads for owners on other hosts
// (comm/reduce/reduce_plan.hpp). They are added in the association of the tree, like the sums inside a rank
// (AccumulationBuffers): with micro-batches that come in turn from all ranks of the host (interleave_micro_batches),
// about log2(micro-batches) sums of a slice are alive at a time. A leader sends its host's sums of a slice to the
// owner, once; finished slices stay with their owners.
//
// However fast a rank is, its gradients wait in its ring, and then its workers wait, until the slowest of the host
// comes near: of each bucket, a reader takes only the next `window` micro-batches in the host's order, as many as the
// host has workers. So memory does not grow with the differences between ranks. Nobody waits for ever: the first
// micro-batch of that order is always taken, and each rank computes its own in that order.
//
// Why no memory is overwritten while it is still being read:
//  - A ring's memory is reused when every rank of the host has read the bucket.
//  - A rank reads buckets of a step only between its own begin_step and finish(), so its sums of the previous step are
//    valid until it begins the next.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/gradient_rings.hpp"
#include "comm/reduce/rank_loads.hpp"
#include "comm/reduce/reduce_plan.hpp"
#include "comm/reduce/tree.hpp"
#include "comm/reduce/tree_sums.hpp"
#include "comm/transport/topology.hpp"
#include "core/flight_recorder.hpp"
#include "core/trace.hpp"

namespace lockstep::comm {

class StreamedReduceScatter final : public GradientSink {
 public:
  /// Collective. `first_tag_bucket`: messages use the tags of bucket numbers from this one on. The communicator must
  /// outlive it. `buckets`: all scattered.
  StreamedReduceScatter(Communicator& communicator, GradientBuckets buckets, const ReducerOptions& options,
                        int first_tag_bucket);
  ~StreamedReduceScatter() override;
  StreamedReduceScatter(const StreamedReduceScatter&) = delete;
  StreamedReduceScatter& operator=(const StreamedReduceScatter&) = delete;

  /// What the ranks of a host share, or have in common. Its rings take GradientRings::elements() for each worker.
  struct HostLoad {
    int workers = 0;
    std::int64_t waiting = 0;  ///< the most sums of a slice that wait for their siblings
  };
  /// Of the rank's host. `workers`: by rank.
  [[nodiscard]] static HostLoad host_load(const MicroBatchAssignment& assignment, const Hosts& hosts, int rank,
                                          std::span<const int> workers);
  /// Bytes of the sums of a rank's slices, and of those received from other hosts; without the finished ones.
  [[nodiscard]] static std::int64_t sum_bytes(const HostLoad& host, const SumLoad& sums, const SliceLoad& slices,
                                              int hosts);

  void begin_step(std::uint64_t step, const MicroBatchAssignment& assignment);
  /// For each micro-batch, buckets must come in ascending order, as must calls of ready(). Waits for room.
  [[nodiscard]] GradientBuffer buffer(int micro_batch, int bucket) override;
  void ready(int micro_batch, int bucket) override;
  void finish();
  [[nodiscard]] std::span<const float> reduced(int bucket) const;
  [[nodiscard]] ReducerStatistics statistics() const;
  void trace(TraceRecorder* recorder) { trace_ = recorder; }

 private:
  /// A slice that this rank adds for its host.
  struct Handled {
    int bucket = 0;
    std::int64_t first = 0, size = 0;
    int owner = 0;
    int roots_left = 0;  ///< in this step
    bool complete = false;
    AlignedBytes host_sums = {}, received = {};             ///< of its host's subtrees, and from the other hosts
    std::vector<std::unique_ptr<Transfer>> transfers = {};  ///< if this rank owns it: receives of the other hosts' sums
  };

  void lay_out();
  void use(const MicroBatchAssignment& assignment);
  void post_receives();
  [[nodiscard]] int bucket_count() const { return buckets_.count(); }
  [[nodiscard]] bool owns(const Handled& slice) const { return slice.owner == communicator_.rank(); }
  [[nodiscard]] Operation operation() const { return {"reduce", step_, options_.timeout, nullptr, options_.watch}; }
  /// Where the finished sum of a slice is stored.
  [[nodiscard]] float* sum_of(const Handled& slice) const;
  /// Sum number `number` of a slice in `memory`.
  [[nodiscard]] static std::span<float> part_of(const AlignedBytes& memory, const Handled& slice, std::size_t number);

  void order_micro_batches();
  void run_progress_thread();
  bool advance();
  bool take(const GradientRings::Published& published);
  void add(const GradientRings::Published& published);
  void root_done(Handled& slice, int root);
  bool combine();
  void complete(Handled& slice);
  [[nodiscard]] std::uint64_t to_come(int rank) const;
  /// Whether the step is done. A rank also reads buckets in which it has no slice, to free the ring's memory.
  [[nodiscard]] bool is_done() const { return incomplete_ == 0 && unread_ == 0; }
  [[nodiscard]] std::pair<int, std::string> missing() const;
  /// Called by a worker that has waited since `start` for room in its ring.
  void check_wait(int micro_batch, Clock::time_point start);
  [[noreturn]] void give_up(int peer, const std::string& what, Clock::time_point since) const;

  Communicator& communicator_;
  std::shared_ptr<FlightRecorder> recorder_;  ///< never null
  GradientBuckets buckets_;
  ReducerOptions options_;
  int first_tag_bucket_;
  Hosts hosts_;
  Tree tree_;
  std::vector<int> local_ranks_;  ///< of this host
  GradientRings rings_;

  std::vector<Handled> handled_;
  std::vector<std::vector<int>> handled_of_;  ///< by bucket
  std::vector<std::int64_t> starts_;          ///< offsets of buckets in sums_
  AlignedBytes sums_;                         ///< only this rank's own slices are touched
  std::unique_ptr<BufferMemory> buffer_memory_;
  std::unique_ptr<AccumulationBuffers> adding_;  ///< its buckets are handled_
  std::vector<TreeNode> host_nodes_;
  std::vector<OtherSum> others_;
  Combiner combiner_;

  MicroBatchAssignment assignment_;
  std::uint64_t step_ = 0, epoch_ = 0;
  TraceRecorder* trace_ = nullptr;

  mutable std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  bool running_ = false, stop_ = false;
  std::exception_ptr error_;
  std::vector<int> order_;                   ///< by micro-batch of this host: its place among them
  int window_ = 1;                           ///< how many places, from the first one that has not been read, are taken
  std::vector<std::vector<char>> read_;      ///< by bucket and place: it has been read in this step
  std::vector<std::size_t> first_unread_;    ///< by bucket: a place
  std::vector<std::uint64_t> read_in_step_;  ///< by local rank: number of buckets
  std::uint64_t unread_ = 0;                 ///< number of buckets of this host's micro-batches
  std::size_t incomplete_ = 0;               ///< number of handled_
  std::vector<std::unique_ptr<Transfer>> sends_;
  Clock::time_point last_progress_;
  ReducerStatistics statistics_;
  std::thread progress_thread_;
};

}  // namespace lockstep::comm
