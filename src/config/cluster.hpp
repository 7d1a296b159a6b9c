// The cluster file of `lockstep plan --cluster`: hosts that are not here, with their devices and their network.
//
//   network: 25e9
//   hosts:
//     - {count: 2, ranks: 8, device: H100}
//     - {ranks: 4, device: A100-40, network: 12.5e9}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/job.hpp"

namespace lockstep {

/// Hosts that are alike.
struct ClusterHosts {
  std::int64_t count = 1, ranks = 1;  ///< how many there are, and the ranks of each
  std::string device;                 ///< each rank's GPU, by the name of its maker's figures; empty: `profile` is set
  std::string profile;                ///< of a CPU host: a file of `lockstep bench device`
  double network = 0;                 ///< bytes per second to other hosts, one way; 0: the cluster's
  Place place;
};

struct ClusterFile {
  double network = 12.5e9;
  std::vector<ClusterHosts> hosts;
};

namespace config {

/// Throws Problems: all mistakes, each with its place.
[[nodiscard]] ClusterFile load_cluster(const std::string& path);

}  // namespace config
}  // namespace lockstep
