// How long the gradient's all-reduce takes on a network with tiers (inside a host, inside a pod of hosts, between
// pods), and how much of it is exposed: not hidden behind the backward pass.
//
// It is hierarchical. In the lowest tier a reduce-scatter leaves each device with the sum of one slice; the slices
// alone go through the next tier, and so on; on the way back each tier gathers what the one above has finished. So a
// tier of n members carries (n - 1) / n of what a device brings to it, once in each direction, and the tier above an
// nth of it.
#pragma once

#include <span>
#include <vector>

namespace lockstep::bench {

/// `members` groups of the tier below (devices, in the lowest one) reduce with each other.
struct NetworkTier {
  int members = 1;
  double bytes_per_second = 0;  ///< of one device into this tier; what devices share is divided among them
  double latency_seconds = 0;   ///< of a round
};

/// How the members of a tier send slices to each other.
enum class AllReduceKind {
  direct,  ///< each sends to each at once, as lockstep does between hosts: a round
  ring,    ///< each to its neighbour: members - 1 rounds
};

struct ClusterShape {
  int devices = 1;
  int devices_a_host = 8;
  int hosts_a_pod = 0;  ///< 0: there are no pods
};

/// What leads out of a device (inside the host), out of a host (inside the pod), out of a pod.
struct NetworkLinks {
  double device_bytes_per_second = 0, host_bytes_per_second = 0;
  double pod_bytes_per_second = 0;  ///< of one host, too: what it gets of the links between pods
  double device_latency = 0, host_latency = 0, pod_latency = 0;  ///< seconds
};

/// From the lowest to the highest; those of one member are left out.
[[nodiscard]] std::vector<NetworkTier> tiers_of(const ClusterShape& cluster, const NetworkLinks& links);

[[nodiscard]] double all_reduce_seconds(std::span<const NetworkTier> tiers, double bytes,
                                        AllReduceKind kind = AllReduceKind::direct);

/// Of an all-reduce of `bytes` in buckets, the last of which is complete when the backward pass ends. All others are
/// sent during the last `hiding_seconds` of it, and what does not fit is exposed with the last one.
[[nodiscard]] double exposed_seconds(std::span<const NetworkTier> tiers, double bytes, double bucket_bytes,
                                     double hiding_seconds, AllReduceKind kind = AllReduceKind::direct);

}  // namespace lockstep::bench
