#include "cli/trial_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "cli/ranks.hpp"
#include "device/gpu/driver.hpp"
#include "device/threads.hpp"
#include "graph/model_graph.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

std::vector<std::int64_t> gpus(const JobFile& job) {
  if (!job.devices.empty()) return job.devices;
  std::vector<std::int64_t> all(device::ask_driver().gpus.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// The slices in CUDA_VISIBLE_DEVICES. The driver shows a program the first one only.
std::vector<std::string> visible_slices() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<std::string> slices;
  std::istringstream text(visible == nullptr ? "" : visible);
  for (std::string name; std::getline(text, name, ',');) {
    if (name.starts_with("MIG-")) slices.push_back(name);
  }
  return slices;
}

/// Each of them so often.
template <class T>
std::vector<T> repeated(const std::vector<T>& items, int times) {
  std::vector<T> all;
  for (const T& item : items) all.insert(all.end(), static_cast<std::size_t>(times), item);
  return all;
}

void check_gpus(PlaceOptionNames names, const sweep::SweepRunOptions& options) {
  const std::size_t slots = std::max(options.devices.size(), options.slices.size());
  if (slots >= static_cast<std::size_t>(options.ranks)) return;
  const std::size_t found = slots / options.trials_per_gpu;
  const std::string places = options.slices.empty() ? fmt::format("{} GPUs of this machine", found)
                                                    : fmt::format("{} slices in CUDA_VISIBLE_DEVICES", found);
  throw Error(ExitCode::usage,
              options.trials_per_gpu == 1
                  ? fmt::format("--ranks: expected at most the {}, found {}; where they may be shared, {} says by how "
                                "many",
                                places, options.ranks, names.trials_per_gpu)
                  : fmt::format("--ranks: expected at most {}, {} on each of the {}, found {}", slots,
                                options.trials_per_gpu, places, options.ranks));
}

}  // namespace

void check_sharing(const JobFile& job, PlaceOptionNames names, const sweep::SweepRunOptions& options) {
  if (options.trials_per_gpu == 1) return;
  if (job.device != DeviceChoice::cuda) {
    throw Error(ExitCode::usage, fmt::format("{}: expected 1 without device: cuda, found {}; leave it out",
                                             names.trials_per_gpu, options.trials_per_gpu));
  }
  if (options.ranks_per_trial > 1) {
    throw Error(ExitCode::usage, fmt::format("{}: expected 1 with {} {}, since NCCL does not join ranks that share a "
                                             "GPU, found {}",
                                             names.ranks_per_trial, names.trials_per_gpu, options.trials_per_gpu,
                                             options.ranks_per_trial));
  }
}

void place_trials(const JobFile& job, const std::string& ranks, PlaceOptionNames names,
                  sweep::SweepRunOptions& options) {
  check_sharing(job, names, options);
  options.prometheus_port = job.telemetry.prometheus_port;
  const bool cpu = job.device != DeviceChoice::cuda;
  if (!cpu && job.devices.empty()) options.slices = repeated(visible_slices(), options.trials_per_gpu);
  if (!cpu && options.slices.empty()) options.devices = repeated(gpus(job), options.trials_per_gpu);
  if (!options.slices.empty() && options.ranks_per_trial > 1) {
    throw Error(ExitCode::usage, fmt::format("{}: expected 1 on slices of GPUs, which NCCL does not join, found {}",
                                             names.ranks_per_trial, options.ranks_per_trial));
  }
  const int cores = device::available_cores();
  const std::size_t slots = std::max(options.devices.size(), options.slices.size());
  const int automatic = cpu ? cores / std::max(1, job.threads) : static_cast<int>(slots);
  options.ranks = rank_count(ranks, std::max(automatic, options.ranks_per_trial));
  if (options.ranks < options.ranks_per_trial) {
    throw Error(ExitCode::usage, fmt::format("--ranks: expected at least the {} of {}, found {}",
                                             options.ranks_per_trial, names.ranks_per_trial, options.ranks));
  }
  if (!cpu) check_gpus(names, options);
  if (cpu && job.threads == 0) options.threads = std::max(1, cores / options.ranks);
}

Direction better_direction(const std::string& metric, const Registries& registries) {
  return higher_is_better(registries.ops, metric) ? Direction::maximize : Direction::minimize;
}

}  // namespace lockstep::cli
