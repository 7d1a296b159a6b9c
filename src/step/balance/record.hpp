// What a checkpoint stores of the balancer, so that a resumed run begins with the shares that were found.
#pragma once

#include <string>
#include <vector>

namespace lockstep::balance {

struct Record {
  std::vector<std::string> hosts;               ///< by rank
  std::vector<int> workers;                     ///< by rank
  std::vector<double> seconds_per_micro_batch;  ///< by rank; 0: unknown

  /// Whether it was recorded by the same ranks.
  bool fits(const std::vector<std::string>& hosts_now, const std::vector<int>& workers_now) const {
    return !hosts.empty() && hosts == hosts_now && workers == workers_now &&
           seconds_per_micro_batch.size() == hosts.size();
  }
};

}  // namespace lockstep::balance
