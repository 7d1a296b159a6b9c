#include "cli/planned_job.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <numeric>

#include "comm/transport/topology.hpp"
#include "core/median.hpp"
#include "core/spans.hpp"
#include "core/words.hpp"
#include "data/loader.hpp"
#include "device/threads.hpp"
#include "graph/model_graph.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"
#include "run/plan/device_table.hpp"
#include "run/plan/limits.hpp"
#include "run/plan/profile.hpp"
#include "run/plan/report.hpp"
#include "step/balance/weights.hpp"
#include "step/exec/memory_needs.hpp"
#include "step/optim/registry.hpp"
#include "step/optim/updater.hpp"

namespace lockstep::cli {

namespace {

/// The overhead of a step besides its phases, and by how much ranks that wait for each other are slower. Measured:
/// docs/design/planning.md.
constexpr double kStepSeconds = 100e-6, kUnevenness = 0.06;
constexpr double kMeasureSeconds = 1.5;

/// The time to read and prepare a micro-batch with one loader thread that has nothing prefetched.
double seconds_of_data(const JobFile& job, const input::PreparedData& data, const Graph& graph) {
  data::LoaderOptions options;
  options.batch = job.batch_size;
  options.micro_batches = job.micro_batches;
  options.seed = job.seed;
  options.last_step = std::uint64_t{1} << 40;
  options.threads = 1;
  options.inputs = input_names(graph);
  data::Loader loader(*data.train, data.pipeline(*data.train, true), options);
  std::vector<double> seconds;
  const auto begin = Clock::now();
  for (std::uint64_t i = 0; i < 32 && (i < 3 || seconds_since(begin) < 0.3); ++i) {
    const auto start = Clock::now();
    const std::uint64_t step = i / job.micro_batches;
    const int micro_batch = i % job.micro_batches;
    (void)loader.get(step, micro_batch);
    loader.release(step, micro_batch);
    seconds.push_back(seconds_since(start));
  }
  return median(std::move(seconds));
}

std::int64_t parse_size(const std::string& text) {
  try {
    std::string bytes = text;
    const std::string problem = CLI::AsSizeValue(false)(bytes);
    const std::int64_t size = problem.empty() ? std::stoll(bytes) : 0;
    if (size > 0) return size;
  } catch (const std::exception&) {  // CLI11's, for an unknown unit, or std::stoll's
  }
  throw Error(ExitCode::usage, fmt::format("--memory: expected bytes, such as 8GiB or 500MiB, found '{}'", text));
}

/// With the hosts' devices looked up: all GPUs, or all CPUs. Throws Problems.
std::optional<ClusterFile> load_cluster(const std::string& path) {
  if (path.empty()) return std::nullopt;
  ClusterFile cluster = config::load_cluster(path);
  const bool on_gpus = !cluster.hosts.front().device.empty();
  for (const ClusterHosts& hosts : cluster.hosts) {
    if (hosts.device.empty() == on_gpus) {
      throw config::Problems(
          {{hosts.place, fmt::format("expected {}, as the first hosts have, found {}", on_gpus ? "device" : "profile",
                                     on_gpus ? "profile" : "device")}});
    }
    if (on_gpus && plan::find_device(hosts.device) == nullptr) {
      throw config::Problems({{hosts.place, fmt::format("device: expected one of {}, found '{}'",
                                                        plan::names_of_devices(), hosts.device)}});
    }
  }
  return cluster;
}

bool plans_for_gpus(const PlanOptions& options, const std::optional<ClusterFile>& cluster) {
  return !options.devices.empty() || (cluster && !cluster->hosts.front().device.empty());
}

int ranks_of(const ClusterFile& cluster) {
  std::int64_t ranks = 0;
  for (const ClusterHosts& hosts : cluster.hosts) ranks += hosts.count * hosts.ranks;
  return ranks;
}

/// The job that is planned. Mistakes are reported before any work.
JobFile load(PlanOptions& options, const Registries& registries, bool on_gpus) {
  if (!options.memory.empty()) (void)parse_size(options.memory);
  JobFile job = options.job.load(registries);
  if (!on_gpus && job.device == DeviceChoice::cuda) {
    throw Error(ExitCode::usage,
                "plan: a job with device: cuda is predicted by figures; say for which GPUs, as in --devices 8xH100");
  }
  if (on_gpus && !optim::is_on_gpus(job.optimizer.kind)) {
    throw Error(ExitCode::configuration, fmt::format("plan: expected an optimizer that GPUs can compute, found '{}'; "
                                                     "predict it for CPUs",
                                                     job.optimizer.kind));
  }
  return job;
}

}  // namespace

PlannedJob::PlannedJob(PlanOptions& options)
    : registries_(options.job.registries()),
      cluster_(load_cluster(options.cluster)),
      opened_(registries_, load(options, registries_, plans_for_gpus(options, cluster_)),
              cluster_ ? ranks_of(*cluster_) : options.ranks, plans_for_gpus(options, cluster_)),
      on_gpus_(plans_for_gpus(options, cluster_)) {
  ranks_ = plan::ranks_of_one_host(options.ranks, job().threads, device::available_cores());
  time_ = std::make_unique<plan::TimeSetup>();
  time_->optimizer_states = opened_.memory().states.size();
  time_->optimizer = opened_.memory().optimizer;
  time_->optimizer_settings = optim::settings_of(*time_->optimizer, job().optimizer);
  time_->step_seconds = kStepSeconds;
  if (!on_gpus_) {
    time_->unevenness = kUnevenness;
    time_->data_seconds = seconds_of_data(job(), opened_.data(), opened_.lowered());
  }
  if (cluster_) {
    time_by_cluster();
  } else if (on_gpus_) {
    time_by_devices(options);
  } else {
    config::check_world_size(job(), options.ranks);
    options.profiles.empty() ? time_here() : time_by_profiles(options);
  }
  apply_balance();
  set_limits(options);
}

void PlannedJob::time_by_devices(const PlanOptions& options) {
  const auto devices = plan::devices_of(options.devices);
  std::vector<const plan::KnownDevice*> kinds;
  for (const auto* device : devices) {
    if (std::find(kinds.begin(), kinds.end(), device) == kinds.end()) kinds.push_back(device);
  }
  for (const auto* kind : kinds) {
    rates_.push_back(plan::rates_of(*kind, job().precision));
    seconds_.push_back(plan::seconds_by_rates(opened_.lowered(), rates_.back()));
  }
  ranks_ = plan::ranks_of_one_host(devices.size(), 1, 1);
  config::check_world_size(job(), ranks_.count());
  for (const auto* device : devices) {
    const std::size_t kind = std::find(kinds.begin(), kinds.end(), device) - kinds.begin();
    time_->ranks.push_back({seconds_[kind], rates_[kind]});
    double micro_batch = 0;
    for (const auto& node : seconds_[kind]) micro_batch += node.forward + node.backward;
    ranks_.speeds.push_back(1 / micro_batch);
  }
  assumptions_.push_back(fmt::format(
      "predicted from the makers' figures, assuming {:.0f} % of the peak of products in {}, {:.0f} % of the memory's "
      "bandwidth, {:.0f} % of the links', {}/s from part to part through the host's memory, one host, and kernels' "
      "workspaces as on the CPU; nothing was measured",
      100 * plan::kShareOfFlops, name_of(job().precision), 100 * plan::kShareOfMemory, 100 * plan::kShareOfLink,
      byte_count(plan::kPartBytes)));
}

void PlannedJob::time_by_cluster() {
  for (const ClusterHosts& hosts : cluster_->hosts) {
    plan::Rates& rates =
        rates_.emplace_back(on_gpus_ ? plan::rates_of(*plan::find_device(hosts.device), job().precision)
                                     : plan::read_profile(hosts.profile));
    rates.network_bytes = plan::kShareOfLink * hosts.network;
    seconds_.push_back(plan::seconds_by_rates(opened_.lowered(), rates));
    assumptions_.push_back(fmt::format("{} with {} each: {}, {}/s to other hosts",
                                       telemetry::counted(hosts.count, "host"), telemetry::counted(hosts.ranks, "rank"),
                                       rates.device, byte_count(rates.network_bytes)));
  }
  ranks_ = {};
  int host = 0;
  for (std::size_t i = 0; i < cluster_->hosts.size(); ++i) {
    const ClusterHosts& hosts = cluster_->hosts[i];
    const int own = hosts.ranks;
    const int threads = on_gpus_ ? 1 : plan::ranks_of_one_host(own, job().threads, rates_[i].cores).threads.front();
    double micro_batch = 0;
    for (const auto& node : seconds_[i]) micro_batch += node.forward + node.backward;
    for (std::int64_t copy = 0; copy < hosts.count; ++copy, ++host) {
      ranks_.host_of.insert(ranks_.host_of.end(), own, host);
      ranks_.threads.insert(ranks_.threads.end(), own, threads);
      ranks_.speeds.insert(ranks_.speeds.end(), own, threads / micro_batch);
      for (int rank = 0; rank < own; ++rank) time_->ranks.push_back({seconds_[i], rates_[i]});
    }
  }
  config::check_world_size(job(), ranks_.count());
  assumptions_.push_back(fmt::format(
      "assuming {:.0f} % of the links' and the network's bandwidth{}; nothing was measured", 100 * plan::kShareOfLink,
      on_gpus_ ? fmt::format(", {:.0f} % of the makers' products in {}, {:.0f} % of the "
                             "memory's bandwidth, and {}/s from part to part",
                             100 * plan::kShareOfFlops, name_of(job().precision), 100 * plan::kShareOfMemory,
                             byte_count(plan::kPartBytes))
               : ""));
}

// Consecutive ranks with the same profile are on one host.
void PlannedJob::time_by_profiles(const PlanOptions& options) {
  const std::size_t ranks = options.ranks;
  std::vector<std::string> files = options.profiles;
  if (files.size() == 1) files.resize(ranks, files.front());
  if (files.size() != ranks) {
    throw Error(ExitCode::usage,
                fmt::format("--profile: expected one file for all ranks, or one for each of {}, found {}", ranks,
                            files.size()));
  }
  std::vector<std::size_t> first;  // first rank of each host
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (rank > 0 && files[rank] == files[rank - 1]) continue;
    first.push_back(rank);
    host_names_.push_back(std::filesystem::path(files[rank]).stem().string());
    rates_.push_back(plan::read_profile(files[rank]));
    seconds_.push_back(plan::seconds_by_rates(opened_.lowered(), rates_.back()));
    assumptions_.push_back(fmt::format(
        "{}by the rates of {} ({}, {})", options.profiles.size() == 1 ? "" : fmt::format("from rank {} on ", rank),
        files[rank], rates_.back().device, telemetry::counted(rates_.back().cores, "core")));
  }
  first.push_back(ranks);
  ranks_ = {};
  for (std::size_t host = 0; host + 1 < first.size(); ++host) {
    const int own = first[host + 1] - first[host];
    const plan::RankSetup of_host = plan::ranks_of_one_host(own, job().threads, rates_[host].cores);
    double micro_batch = 0;
    for (const auto& node : seconds_[host]) micro_batch += node.forward + node.backward;
    for (int rank = 0; rank < own; ++rank) {
      ranks_.host_of.push_back(host);
      ranks_.threads.push_back(of_host.threads.front());
      if (first.size() > 2) ranks_.speeds.push_back(of_host.threads.front() / micro_batch);
      time_->ranks.push_back({seconds_[host], rates_[host]});
    }
  }
}

void PlannedJob::time_here() {
  const int cores = device::available_cores();
  const int busy = std::accumulate(ranks_.threads.begin(), ranks_.threads.end(), 0);
  const std::int64_t one = plan::bytes_to_measure(opened_.lowered(), opened_.device(), time_->optimizer_states);
  const std::int64_t room = device::available_memory() / 10 * 8;
  if (one > room) {
    throw Error(
        ExitCode::usage,
        fmt::format("plan: a micro-batch of this model takes {}, more than this machine has free, so its layers cannot "
                    "be timed here; give the rates of another with --profile, or --devices",
                    plan::size_text(one)));
  }
  const int threads = std::clamp<std::int64_t>(room / one, 1, std::min(cores, busy));
  const plan::MeasuredGraph measured = plan::measure_graph(opened_.lowered(), opened_.device(), job(),
                                                           registries_.optimizers, {threads, kMeasureSeconds});
  seconds_.push_back(measured.nodes);
  time_->update_seconds = measured.update;
  std::int64_t gradient = 0;
  for (const ValueId id : opened_.lowered().parameters)
    gradient += static_cast<std::int64_t>(opened_.lowered().at(id).spec.bytes());
  plan::Rates rates;
  rates.device = opened_.device().name();
  rates.add_bytes = plan::measure_add(gradient, threads);
  rates.element_bytes = rates.add_bytes;
  rates.message_seconds = plan::kMessageSeconds;
  rates.message_bytes = rates.add_bytes / 3;
  rates.cores = cores;
  rates_.push_back(rates);
  host_names_.push_back(comm::host_identity());
  for (int rank = 0; rank < ranks_.count(); ++rank) time_->ranks.push_back({seconds_.back(), rates_.back()});
  assumptions_.push_back(fmt::format("each layer's kernel, the update and sums were timed here, on {} at once ({}, {})",
                                     telemetry::counted(threads, "thread"), rates.device,
                                     telemetry::counted(cores, "core")));
  assumptions_.push_back(fmt::format("a message between ranks is assumed to take {:.0f} us and {}/s",
                                     1e6 * rates.message_seconds, byte_count(rates.message_bytes)));
}

void PlannedJob::apply_balance() {
  const BalanceOptions& options = job().balance;
  if (!options.weights.empty()) {
    std::vector<balance::RankHost> hosts;
    for (std::size_t rank = 0; rank < time_->ranks.size(); ++rank) {
      const std::size_t host = ranks_.host_of[rank];
      hosts.push_back({host < host_names_.size() ? host_names_[host] : "", time_->ranks[rank].rates.device});
    }
    ranks_.speeds = balance::weights_of_ranks(options.weights, hosts, job().place_of("job.balance.weights").text());
  } else if (options.mode == BalanceMode::equal || job().exact == Exactness::never) {
    ranks_.speeds.clear();
  }
}

void PlannedJob::set_limits(const PlanOptions& options) {
  const bool given = !options.memory.empty();
  const std::int64_t host = given ? parse_size(options.memory) : plan::memory_of_host() / ranks_.count();
  for (int rank = 0; rank < ranks_.count(); ++rank) {
    const std::int64_t own = time_->ranks[rank].rates.memory;
    const bool of_device = !given && own > 0;
    const auto sharers = std::count(ranks_.host_of.begin(), ranks_.host_of.end(), ranks_.host_of[rank]);
    const auto reserve = on_gpus_ ? static_cast<std::int64_t>(exec::bytes_of_libraries(own)) : 0;
    limits_.push_back(of_device ? (on_gpus_ ? own - reserve : own / sharers) : host);
  }
}

std::int64_t PlannedJob::limit() const {
  return *std::min_element(limits_.begin(), limits_.end());
}

plan::SearchSetup PlannedJob::search_setup() const {
  const bool may_divide = job().exact != Exactness::never;
  return {opened_.model(), opened_.memory(), *time_, ranks_, limits_, may_divide};
}

double PlannedJob::seconds_of_one_rank() const {
  const plan::RankSetup one{{0}, {ranks_.threads.front()}, {}};
  plan::TimeSetup time = *time_;
  time.ranks.clear();
  time.ranks.push_back(time_->ranks.front());
  time.unevenness = 0;
  plan::Choice choice = plan::choice_of(job());
  choice.parallel = {};
  return plan::time_of(plan::place_model(opened_.model(), one, choice), time).seconds;
}

}  // namespace lockstep::cli
