#include "tools/sweep/places.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "launch/secrets.hpp"

namespace lockstep::sweep {

namespace {

constexpr std::chrono::seconds kAnswerPatience{15}, kEndPatience{15};

}  // namespace

Places::Places(const SweepRunOptions& options) {
  launch::Hosts hosts{{"", options.ranks}};
  if (options.pool) {
    pool_.emplace(*options.pool);
    pool_->settle(kAnswerPatience);
    hosts = pool_->listed();
  }
  for (const auto& host : hosts) {
    for (int rank = 0; rank + options.ranks_per_trial <= host.slots; rank += options.ranks_per_trial) {
      places_.push_back({host.name, rank});
    }
  }
}

bool Places::usable(std::size_t slot) const {
  if (!pool_) return true;
  const auto hosts = pool_->usable();
  return std::any_of(hosts.begin(), hosts.end(), [&](const auto& host) { return host.name == places_[slot].host; });
}

std::string Places::name(std::size_t slot, bool own_device) const {
  const bool several = std::any_of(places_.begin(), places_.end(),
                                   [&](const Place& place) { return place.host != places_.front().host; });
  if (several) return "host " + places_[slot].host;
  return own_device ? fmt::format("slot {}", slot) : "this machine";
}

std::vector<std::string> Places::refresh() {
  if (!pool_) return {};
  pool_->refresh();
  return pool_->take_problems();
}

bool Places::gone(std::size_t slot) {
  if (!pool_) return false;
  pool_->ask_all_again(kAnswerPatience);
  return !usable(slot);
}

bool Places::give_secrets(std::size_t slot, const std::string& mark) {
  const auto secrets = launch::secret_variables(environ);
  if (!pool_ || secrets.empty()) return true;
  const launch::Host host{places_[slot].host, 1};
  if (std::find(holders_.begin(), holders_.end(), host) == holders_.end()) holders_.push_back(host);
  const auto without =
      pool_->run_everywhere({host}, fmt::format("launch --keep {}", mark), kAnswerPatience, launch::to_text(secrets));
  for (const auto& [name, code] : without) {
    pool_->leave_out(name,
                     "it has not taken the keys of object stores, which the agent must pass on from stdin to 'lockstep "
                     "launch --keep', into /dev/shm");
  }
  return without.empty();
}

void Places::end_processes(const std::string& mark) {
  if (!pool_) return;
  launch::Hosts hosts = pool_->usable();
  for (const launch::Host& host : holders_) {
    const auto same = [&](const launch::Host& other) { return other.name == host.name; };
    if (std::none_of(hosts.begin(), hosts.end(), same)) hosts.push_back(host);
  }
  (void)pool_->run_everywhere(hosts, fmt::format("launch --end {}", mark), kEndPatience);
  holders_.clear();
}

}  // namespace lockstep::sweep
