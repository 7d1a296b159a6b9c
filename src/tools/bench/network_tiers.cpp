#include "tools/bench/network_tiers.hpp"

#include <algorithm>

#include "core/round_up.hpp"

namespace lockstep::bench {

std::vector<NetworkTier> tiers_of(const ClusterShape& cluster, const NetworkLinks& links) {
  const int on_a_host = std::min(cluster.devices, cluster.devices_a_host);
  const int hosts = divide_up(cluster.devices, cluster.devices_a_host);
  const int in_a_pod = cluster.hosts_a_pod > 0 ? std::min(hosts, cluster.hosts_a_pod) : hosts;
  // Each device of a host owns a slice, so all of them send at the same time and share the host's link.
  const NetworkTier all[] = {{on_a_host, links.device_bytes_per_second, links.device_latency},
                             {in_a_pod, links.host_bytes_per_second / on_a_host, links.host_latency},
                             {divide_up(hosts, in_a_pod), links.pod_bytes_per_second / on_a_host, links.pod_latency}};
  std::vector<NetworkTier> tiers;
  for (const NetworkTier& tier : all) {
    if (tier.members > 1) tiers.push_back(tier);
  }
  return tiers;
}

double all_reduce_seconds(std::span<const NetworkTier> tiers, double bytes, AllReduceKind kind) {
  double seconds = 0;
  for (const NetworkTier& tier : tiers) {
    const double others = tier.members - 1;
    const double rounds = kind == AllReduceKind::ring ? others : std::min(others, 1.0);
    seconds += 2 * (rounds * tier.latency_seconds + others / tier.members * bytes / tier.bytes_per_second);
    bytes /= tier.members;
  }
  return seconds;
}

double exposed_seconds(std::span<const NetworkTier> tiers, double bytes, double bucket_bytes, double hiding_seconds,
                       AllReduceKind kind) {
  const double all = all_reduce_seconds(tiers, bytes, kind);
  const double last = all_reduce_seconds(tiers, std::min(bytes, bucket_bytes), kind);
  return last + std::max(0.0, all - last - hiding_seconds);
}

}  // namespace lockstep::bench
