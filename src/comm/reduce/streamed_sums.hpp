// StreamedSums: sums of a host's micro-batches in scattered buckets; no rank ever holds a whole gradient. A worker
// writes the gradient of a micro-batch, bucket by bucket, into a ring of its own in the host's memory (GradientRings).
// Every rank of the host adds its slices to its sums; when all have, that part of the ring is free again. Sums follow
// the tree, like those inside a rank (AccumulationBuffers). Micro-batches come in turn from all ranks of the host
// (interleave_micro_batches), so about log2(micro-batches) sums of a slice are alive at a time.
//
// A fast rank does not run ahead: of each bucket, a reader takes only the next `window` micro-batches in the host's
// order, as many as the host has workers. The others stay in their rings, and then their workers wait. So memory does
// not grow with the differences between ranks. Nobody waits for ever: the first micro-batch of that order is always
// taken, and each rank computes its own in that order.
//
// No memory is overwritten while it is read: a rank reads buckets of a step only between its own begin_step and
// finish(), and a ring's memory is used again when every rank of the host has read it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/gradient_rings.hpp"
#include "comm/reduce/tree.hpp"
#include "comm/reduce/tree_sums.hpp"
#include "comm/transport/topology.hpp"

namespace lockstep::comm {

class StreamedSums {
 public:
  /// A slice that this rank adds for its host.
  struct Handled {
    int bucket = 0;
    std::int64_t first = 0, size = 0;
  };
  /// Collective. `handled`: ascending by bucket. All references must outlive it.
  StreamedSums(Communicator& communicator, const GradientBuckets& buckets, const Hosts& hosts,
               const ReducerOptions& options, const std::vector<Doorbell*>& doorbells, std::vector<Handled> handled);

  /// The most sums of a slice that wait for their siblings, on the rank's host. `workers`: of all its ranks.
  [[nodiscard]] static int most_waiting(const MicroBatchAssignment& assignment, const Hosts& hosts, int rank,
                                        int workers);

  // By the main thread, between steps.

  /// `subtrees`: the host's maximal ones; the sum of each is made.
  void use(const MicroBatchAssignment& assignment, const std::vector<TreeNode>& subtrees);
  /// `memory(subtree, h)`: where the sum of handled slice h is to be made.
  void begin_step(std::uint64_t epoch, std::function<float*(int subtree, int h)> memory);

  // By workers.

  /// For each micro-batch, scattered buckets must come in ascending order, as must calls of publish(). Waits for room,
  /// calling `waits` meanwhile, which throws when the wait has been too long.
  [[nodiscard]] float* open(int micro_batch, int bucket, const std::function<void()>& waits) {
    return rings_.open(micro_batch, order_[micro_batch], bucket, waits);
  }
  void publish(int micro_batch, int bucket) { rings_.publish(micro_batch, bucket, epoch_); }
  [[nodiscard]] int slowest_reader(int micro_batch) { return rings_.slowest_reader(micro_batch); }

  // By one thread at a time, until all of the step is read().

  /// Adds what has come and may be taken. Returns whether there was any. `trace`: may be null.
  bool advance(TraceRecorder* trace, std::uint64_t step);
  /// Whether the sum of the host's subtree is made in all handled slices of the bucket.
  bool has(int subtree, int bucket) const { return has_[bucket][subtree] != 0; }
  /// Whether the bucket of all of the host's micro-batches has been read.
  bool read(int bucket) const { return first_unread_[bucket] + 1 == read_[bucket].size(); }
  /// The local rank of the first micro-batch that has not been read, for which all others may be waiting, and how many
  /// of its buckets have not come.
  std::pair<int, std::size_t> missing() const;
  /// The most floats of sums that have waited at once.
  std::int64_t peak_elements() const { return sums_.peak_pool_elements(); }
  double seconds_adding() const { return seconds_adding_; }

 private:
  bool may_take(const GradientRings::Published& published) const;
  void add(const GradientRings::Published& published);

  const Hosts& hosts_;
  const int rank_;
  std::vector<int> local_ranks_;  ///< of this host
  Tree tree_;
  GradientRings rings_;
  std::vector<Handled> handled_;
  std::vector<std::vector<int>> handled_of_;  ///< by bucket
  std::unique_ptr<BufferMemory> memory_;
  AccumulationBuffers sums_;  ///< its buckets are handled_
  MicroBatchAssignment assignment_;
  std::uint64_t epoch_ = 0;
  int window_ = 1;                         ///< how many places, from the first one that has not been read, are taken
  std::vector<int> order_;                 ///< by micro-batch of this host: its place among them
  std::vector<std::vector<char>> read_;    ///< by bucket and place: it has been read in this step
  std::vector<std::size_t> first_unread_;  ///< by bucket: a place
  std::vector<std::vector<char>> has_;     ///< by bucket and subtree
  double seconds_adding_ = 0;
};

}  // namespace lockstep::comm
