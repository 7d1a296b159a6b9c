// ReducePlan: one rank's part in an exact all-reduce, as a value: which sums it holds, sends, adds and owns. It follows
// from the tree, the micro-batch assignment, the hosts and the buckets alone, so every rank computes its own without
// communication. Two executors carry it out: CpuAllReduce in shared memory and by messages, GpuAllReduce by a GPU's
// transport.
//
// A network is slower than the links within a host. So each slice of a bucket has a leader on every host (on its
// owner's host: the owner). The ranks of a host give the leader their partial sums of the slice; it adds those that are
// siblings in the tree, and sends the owner the remaining sums. Since micro-batches are assigned by host
// (comm/reduce/micro_batch_assignment.hpp), these are as few as a single rank would have, however many ranks the host
// has. The owner adds its own host's partial sums and the other hosts' sums in tree order. The finished slice comes
// back the same way.
//
// A plan is as large as the rank's own share: it grows with the host's partial sums, the other hosts' sums and the
// chunks of the gradient, but not with ranks times buckets.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/micro_batch_assignment.hpp"
#include "comm/reduce/tree.hpp"
#include "comm/transport/topology.hpp"

namespace lockstep::comm {

/// The sum of one of a rank's maximal subtrees; a rank's roots are numbered in order.
struct Partial {
  int rank = 0;
  int root = 0;
  TreeNode node;
};

/// The sum of one of the maximal subtrees that this rank's host has.
struct HostSum {
  TreeNode node;
  std::vector<Partial> parts;       ///< the partial sums that it consists of; by rank and root
  std::vector<Addition> additions;  ///< of the parts; none: it is the one part
};

/// A sum of another host, received from the slice's leader there.
struct OtherSum {
  int leader = 0;
  int number = 0;  ///< among the sums of that host
  TreeNode node;
};

/// What is added; the same for every bucket.
struct SumPlan {
  std::vector<TreeNode> roots;      ///< subtrees of this rank's partial sums
  int max_roots = 1;                ///< the largest number of roots of any rank
  std::vector<Partial> partials;    ///< of all ranks of this host, by rank and root
  std::vector<HostSum> host_sums;   ///< what this rank adds for a slice that it leads
  std::vector<OtherSum> others;     ///< by host and number
  std::vector<Addition> additions;  ///< of `partials`, then `others`: what this rank adds for a slice that it owns
};

struct PlannedSlice {
  int owner = 0;
  int leader = 0;  ///< the leader on this rank's host
  std::int64_t first = 0, size = 0;
};

struct BucketPlan {
  std::vector<PlannedSlice> slices;  ///< as slices_of()
  std::vector<int> led;              ///< numbers of the slices that this rank leads for owners on other hosts
  int own = -1;                      ///< number of this rank's own slice; -1: none
  bool scattered = false;            ///< finished slices stay with their owners
  const PlannedSlice& at(int number) const { return slices[number]; }
  std::int64_t own_size() const { return own < 0 ? 0 : at(own).size; }
};

struct ReducePlan {
  int rank = 0;
  SumPlan sums;
  std::vector<BucketPlan> buckets;
  /// The ranks of a host read the gradient of each micro-batch in scattered buckets, not the sums of a rank's subtrees
  /// (comm/reduce/streamed_sums.hpp).
  bool streamed = false;
  int micro_batches = 0;  ///< of this rank
};

[[nodiscard]] SumPlan plan_sums(const Tree& tree, const MicroBatchAssignment& assignment, const Hosts& hosts, int rank);
[[nodiscard]] std::vector<BucketPlan> plan_buckets(const GradientBuckets& buckets, const Hosts& hosts, int rank);
[[nodiscard]] ReducePlan reduce_plan(const MicroBatchAssignment& assignment, const Hosts& hosts,
                                     const GradientBuckets& buckets, int rank, bool streamed = false);
/// The same if the sums of this host's subtrees come as a whole, as those of streamed buckets do.
[[nodiscard]] SumPlan plan_of_host_sums(const Tree& tree, const SumPlan& plan, int rank);

/// A slice of a sum that one rank sends to another.
struct PlannedMessage {
  enum class What { partial, host_sum, finished };
  int peer = 0;
  What what = What::partial;
  int number = 0;  ///< the sender's root, or its host's sum
  int slice = 0;   ///< number in the bucket
};

/// What the rank sends and receives for a bucket that is not streamed. Between two ranks and for one kind, both sides
/// have the same order. A finished slice goes to the ranks of the owner's host, and once to each other host: to the
/// leader there, whose peers read it where it is received. In a scattered bucket it is not sent.
[[nodiscard]] std::vector<PlannedMessage> planned_sends(const ReducePlan& plan, const Hosts& hosts, int bucket);
[[nodiscard]] std::vector<PlannedMessage> planned_receives(const ReducePlan& plan, const Hosts& hosts, int bucket);

struct PlannedBytes {
  std::uint64_t inside_host = 0, between_hosts = 0;
};

/// Bytes that the rank sends for a bucket, or in one step, over all buckets; without scalars. On one host with equal
/// slices this is (k + 1)(R - 1) / R of the gradient, where k is the number of the rank's partial sums.
[[nodiscard]] PlannedBytes bytes_of(const ReducePlan& plan, const Hosts& hosts, int bucket);
[[nodiscard]] PlannedBytes bytes_of(const ReducePlan& plan, const Hosts& hosts);

}  // namespace lockstep::comm
