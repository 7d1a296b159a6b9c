// How long the gradient's all-reduce takes on a network with tiers (inside a host, inside a pod of hosts, between
// pods), and how much of it is exposed: not hidden behind the backward pass.
//
// The all-reduce is hierarchical. In the lowest tier a reduce-scatter leaves each device with the sum of one slice;
// only the slices go through the next tier, and so on; on the way back each tier all-gathers what the one above has
// finished. So in a tier of n members each device sends (n - 1) / n of its bytes, once in each direction, and brings an
// nth of them to the tier above.
#pragma once

#include <span>
#include <vector>

namespace lockstep::bench {

/// `members` groups of the tier below (in the lowest tier: devices) reduce with each other.
struct NetworkTier {
  int members = 1;
  double bytes_per_second = 0;  ///< of one device into this tier; a link that devices share is divided among them
  double latency_seconds = 0;   ///< of one round
};

/// How the members of a tier send slices to each other.
enum class AllReduceKind {
  direct,  ///< each sends to all others at once, as lockstep does between hosts: one round
  ring,    ///< each sends to its neighbour: members - 1 rounds
};

struct ClusterShape {
  int devices = 1;
  int devices_a_host = 8;
  int hosts_a_pod = 0;  ///< 0: there are no pods
};

/// The links out of a device (inside the host), out of a host (inside the pod), and out of a pod.
struct NetworkLinks {
  double device_bytes_per_second = 0, host_bytes_per_second = 0;
  double pod_bytes_per_second = 0;  ///< also of one host: its share of the links between pods
  double device_latency = 0, host_latency = 0, pod_latency = 0;  ///< seconds
};

/// From the lowest to the highest; tiers with one member are left out.
[[nodiscard]] std::vector<NetworkTier> tiers_of(const ClusterShape& cluster, const NetworkLinks& links);

[[nodiscard]] double all_reduce_seconds(std::span<const NetworkTier> tiers, double bytes,
                                        AllReduceKind kind = AllReduceKind::direct);

/// The exposed part of an all-reduce of `bytes` in buckets. The last bucket is complete only when the backward pass
/// ends, and is always exposed. All others are sent during the last `hiding_seconds` of the pass; what does not fit is
/// exposed, too.
[[nodiscard]] double exposed_seconds(std::span<const NetworkTier> tiers, double bytes, double bucket_bytes,
                                     double hiding_seconds, AllReduceKind kind = AllReduceKind::direct);

}  // namespace lockstep::bench
