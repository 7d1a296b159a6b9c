// `balance: {weights: {...}}`: shares set by hand, by the name of a host or of a device model.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace lockstep::balance {

/// Where a rank runs.
struct RankHost {
  std::string host, model;
};

/// Which entry counts for each rank: its host's name; else its device model's; else the longest one that is a part of
/// the model's name ("A100" of "NVIDIA A100-SXM4-40GB"). 1 where there is none. Throws Error(configuration) for an
/// entry that is no rank's, with the names there are; `key` is the place of the map.
[[nodiscard]] std::vector<double> weights_of_ranks(const std::map<std::string, double>& weights,
                                                   const std::vector<RankHost>& ranks, const std::string& key);

}  // namespace lockstep::balance
