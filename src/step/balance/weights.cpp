#include "step/balance/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "lockstep/error.hpp"

namespace lockstep::balance {

namespace {

using Weights = std::map<std::string, double>;

Weights::const_iterator entry_of(const Weights& weights, const RankHost& rank) {
  if (const auto host = weights.find(rank.host); host != weights.end()) return host;
  if (const auto model = weights.find(rank.model); model != weights.end()) return model;
  auto found = weights.end();
  for (auto entry = weights.begin(); entry != weights.end(); ++entry) {
    if (rank.model.find(entry->first) == std::string::npos) continue;
    if (found == weights.end() || entry->first.size() > found->first.size()) found = entry;
  }
  return found;
}

[[noreturn]] void refuse(const std::string& name, const std::vector<RankHost>& ranks, const std::string& key) {
  std::set<std::string> hosts, models;
  for (const RankHost& rank : ranks) hosts.insert(rank.host), models.insert(rank.model);
  hosts.erase("");
  throw Error(
      ExitCode::configuration,
      fmt::format("{}: expected a host or a processor of this run, found '{}'; {}the processors are {} (a part of the "
                  "name will do); correct the entry or leave it out",
                  key, name, hosts.empty() ? "" : fmt::format("the hosts are {}; ", fmt::join(hosts, ", ")),
                  fmt::join(models, ", ")));
}

}  // namespace

std::vector<double> weights_of_ranks(const Weights& weights, const std::vector<RankHost>& ranks,
                                     const std::string& key) {
  std::vector<double> found;
  for (const RankHost& rank : ranks) {
    const auto entry = entry_of(weights, rank);
    found.push_back(entry != weights.end() ? entry->second : 1);
  }
  for (const auto& [name, weight] : weights) {
    bool known = false;
    for (const RankHost& rank : ranks) {
      known |= rank.host == name || rank.model.find(name) != std::string::npos;
    }
    if (!known) refuse(name, ranks, key);
  }
  return found;
}

}  // namespace lockstep::balance
