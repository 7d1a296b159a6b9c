// `balance: {weights: {...}}`: shares set by hand, by the name of a host or of a device model.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace lockstep::balance {

/// Where a rank runs. The host's name is empty if it is not known.
struct RankHost {
  std::string host, model;
};

/// The entry that applies to each rank: its host's name; else its device model's; else the longest one contained in the
/// model's name ("A100" in "NVIDIA A100-SXM4-40GB"). 1 if there is none. Throws Error(configuration) for an entry that
/// matches no rank, with the known names; `key` is the map's path in the job file.
[[nodiscard]] std::vector<double> weights_of_ranks(const std::map<std::string, double>& weights,
                                                   const std::vector<RankHost>& ranks, const std::string& key);

}  // namespace lockstep::balance
