#include "cli/trial_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "cli/ranks.hpp"
#include "device/gpu/driver.hpp"
#include "device/threads.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

std::vector<std::int64_t> gpus(const JobFile& job) {
  if (job.device != DeviceChoice::cuda) return {};
  if (!job.devices.empty()) return job.devices;
  std::vector<std::int64_t> all(device::ask_driver().gpus.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

void place_trials(const JobFile& job, const std::string& ranks, const char* per_trial,
                  sweep::SweepRunOptions& options) {
  options.prometheus_port = job.telemetry.prometheus_port;
  options.devices = gpus(job);
  const int cores = device::available_cores();
  const bool cpu = job.device != DeviceChoice::cuda;
  const int automatic = cpu ? cores / std::max(1, job.threads) : static_cast<int>(options.devices.size());
  options.ranks = rank_count(ranks, std::max(automatic, options.ranks_per_trial));
  if (options.ranks < options.ranks_per_trial) {
    throw Error(ExitCode::usage, fmt::format("--ranks: expected at least the {} of {}, found {}",
                                             options.ranks_per_trial, per_trial, options.ranks));
  }
  if (!cpu && options.devices.size() < static_cast<std::size_t>(options.ranks)) {
    throw Error(ExitCode::usage, fmt::format("--ranks: expected at most the {} GPUs of this machine, found {}",
                                             options.devices.size(), options.ranks));
  }
  if (cpu && job.threads == 0) options.threads = std::max(1, cores / options.ranks);
}

Direction better_direction(const std::string& metric, const Registries& registries) {
  const OpDef* op = metric == "loss" ? nullptr : registries.ops.find(metric);
  return op != nullptr && op->higher_is_better ? Direction::maximize : Direction::minimize;
}

}  // namespace lockstep::cli
