// ReducePlan: one rank's part in an exact all-reduce, as a value: which sums it holds, sends, adds and owns. It follows
// from the tree, the shard assignment, the hosts and the buckets alone, so every rank knows its own without asking. Two
// executors carry it out: CpuAllReduce in shared memory and by messages, GpuAllReduce by a GPU's transport.
//
// A network is slower than what joins the ranks of a host. So each slice of a bucket has a leader on every host (on its
// owner's host: the owner). The ranks of a host give the leader their partial sums of the slice; it adds those that the
// tree puts together, and sends the owner what is left. Shards are assigned by host (comm/reduce/shard_assignment.hpp),
// so that is as little as of one rank, however many ranks the host has. The owner adds its own host's partial sums and
// the other hosts' sums in tree order. The finished slice comes back the same way.
//
// A plan is as large as the rank's own share: it grows with the host's partial sums, the other hosts' sums and the
// chunks of the gradient, but not with ranks times buckets.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/shard_assignment.hpp"
#include "comm/reduce/tree.hpp"
#include "comm/transport/topology.hpp"

namespace lockstep::comm {

/// The sum of one of a rank's maximal subtrees; roots are numbered in their order.
struct Partial {
  int rank = 0;
  int root = 0;
  TreeNode node;
};

/// The sum of one of the maximal subtrees of all shards of this rank's host.
struct HostSum {
  TreeNode node;
  std::vector<Partial> parts;       ///< that make it; by rank and root
  std::vector<Addition> additions;  ///< of the parts; none: the one part is the sum
};

/// A sum of another host, which arrives from the slice's leader there.
struct OtherSum {
  int leader = 0;
  int number = 0;  ///< among the sums of its host
  TreeNode node;
};

/// What is added, of every bucket alike.
struct SumPlan {
  std::vector<TreeNode> roots;      ///< of this rank's partial sums
  int max_roots = 1;                ///< of any rank
  std::vector<Partial> partials;    ///< of all ranks of this host, by rank and root
  std::vector<HostSum> host_sums;   ///< what this rank adds of a slice that it leads
  std::vector<OtherSum> others;     ///< by host and number
  std::vector<Addition> additions;  ///< of `partials`, then `others`: what this rank adds of a slice that it owns
};

struct PlannedSlice {
  int owner = 0;
  int leader = 0;  ///< on this rank's host
  std::int64_t first = 0, size = 0;
};

struct BucketPlan {
  std::vector<PlannedSlice> slices;  ///< as slices_of()
  std::vector<int> led;              ///< numbers of those that this rank leads for owners on other hosts
  int own = -1;                      ///< number of its own; -1: it has none
  bool scattered = false;            ///< finished slices stay with their owners
  [[nodiscard]] const PlannedSlice& at(int number) const { return slices[static_cast<std::size_t>(number)]; }
  [[nodiscard]] std::int64_t own_size() const { return own < 0 ? 0 : at(own).size; }
};

struct ReducePlan {
  int rank = 0;
  SumPlan sums;
  std::vector<BucketPlan> buckets;
};

[[nodiscard]] SumPlan plan_sums(const Tree& tree, const ShardAssignment& assignment, const Hosts& hosts, int rank);
[[nodiscard]] std::vector<BucketPlan> plan_buckets(const GradientBuckets& buckets, const Hosts& hosts, int rank);
[[nodiscard]] ReducePlan reduce_plan(const ShardAssignment& assignment, const Hosts& hosts,
                                     const GradientBuckets& buckets, int rank);

/// A slice of a sum on its way between two ranks.
struct PlannedMessage {
  enum class What { partial, host_sum, finished };
  int peer = 0;
  What what = What::partial;
  int number = 0;  ///< the sender's root, or its host's sum
  int slice = 0;   ///< number in the bucket
};

/// What the rank sends and receives of a bucket. Between two ranks and of one kind, both sides have them in one order.
/// A finished slice goes to the ranks of the owner's host, and once to each other host: to the leader there, whose
/// peers read it where it arrives. Of a bucket that is scattered it goes nowhere.
[[nodiscard]] std::vector<PlannedMessage> planned_sends(const ReducePlan& plan, const Hosts& hosts, int bucket);
[[nodiscard]] std::vector<PlannedMessage> planned_receives(const ReducePlan& plan, const Hosts& hosts, int bucket);

struct PlannedBytes {
  std::uint64_t inside_host = 0, between_hosts = 0;
};

/// Bytes that the rank sends of a bucket, or in one step, over all buckets; scalars not counted. On one host and for
/// equal slices that is (k + 1)(R - 1) / R of the gradient, where k is the number of the rank's partial sums.
[[nodiscard]] PlannedBytes bytes_of(const ReducePlan& plan, const Hosts& hosts, int bucket);
[[nodiscard]] PlannedBytes bytes_of(const ReducePlan& plan, const Hosts& hosts);
/// The same in one step where buckets that are scattered are streamed (StreamedReduceScatter): the host reads the
/// gradient of each of the rank's `shards`.
[[nodiscard]] PlannedBytes streamed_bytes_of(const ReducePlan& plan, const Hosts& hosts, std::size_t shards);

}  // namespace lockstep::comm
