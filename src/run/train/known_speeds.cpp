#include "run/train/known_speeds.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <span>

#include "config/config.hpp"
#include "core/files.hpp"
#include "graph/workload.hpp"

namespace lockstep::train {

namespace {

constexpr std::size_t kNameWidth = 128;  // of a processor model's name

std::string path_of(const std::string& run_directory) {
  return run_directory + "/balance.json";
}

}  // namespace

void write_balance_record(const std::string& run_directory, const balance::Record& record) {
  if (record.hosts.empty()) return;
  const nlohmann::ordered_json json{{"hosts", record.hosts},
                                    {"workers", record.workers},
                                    {"seconds_per_micro_batch", record.seconds_per_micro_batch}};
  (void)try_write_whole_file(path_of(run_directory), json.dump(2) + "\n");
}

balance::Record read_balance_record(const std::string& run_directory) {
  std::ifstream file(path_of(run_directory));
  const auto json = nlohmann::json::parse(file, nullptr, false);
  try {
    return {json.at("hosts"), json.at("workers"), json.at("seconds_per_micro_batch")};
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

namespace {

std::string label(const telemetry::PrometheusSample& sample, const char* name) {
  const auto found = sample.labels.find(name);
  return found == sample.labels.end() ? "" : found->second;
}

std::string ranks_text(const char* by, const std::string& ranks) {
  if (ranks.empty()) return "";
  const bool several = ranks.find(' ') != std::string::npos;
  return fmt::format("{} for rank{} {}", by, several ? "s" : "", ranks);
}

void append(std::string& ranks, std::size_t rank) {
  ranks += (ranks.empty() ? "" : " ") + std::to_string(rank);
}

}  // namespace

bool EarlierSpeeds::complete() const {
  const auto known = [](double seconds) { return seconds > 0; };
  return !seconds_per_micro_batch.empty() &&
         std::all_of(seconds_per_micro_batch.begin(), seconds_per_micro_batch.end(), known);
}

std::string earlier_runs_query(const std::string& workload) {
  return fmt::format(
      "avg by (host, device) (last_over_time(lockstep_device_micro_batch_seconds{{workload=\"{}\"}}[30d]))", workload);
}

EarlierSpeeds earlier_speeds(const std::vector<telemetry::PrometheusSample>& samples,
                             const std::vector<balance::RankHost>& ranks) {
  std::map<std::pair<std::string, std::string>, double> exact;
  std::map<std::string, std::pair<double, int>> of_device;
  for (const auto& sample : samples) {
    if (!(sample.value > 0)) continue;
    const std::string device = label(sample, "device");
    exact[{label(sample, "host"), device}] = sample.value;
    auto& [sum, count] = of_device[device];
    sum += sample.value;
    ++count;
  }
  EarlierSpeeds speeds;
  std::string by_host, by_device;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    double seconds = 0;
    if (const auto found = exact.find({ranks[r].host, ranks[r].model}); found != exact.end()) {
      seconds = found->second;
      append(by_host, r);
    } else if (const auto other = of_device.find(ranks[r].model); other != of_device.end()) {
      seconds = other->second.first / other->second.second;
      append(by_device, r);
    }
    speeds.seconds_per_micro_batch.push_back(seconds);
  }
  speeds.evidence = ranks_text("by host and device", by_host);
  const std::string rest = ranks_text("by device", by_device);
  speeds.evidence += (speeds.evidence.empty() || rest.empty() ? "" : ", ") + rest;
  return speeds;
}

KnownSpeeds known_speeds(const balance::Record& record, const std::vector<std::string>& hosts,
                         const std::vector<int>& workers, const std::string& prometheus, const std::string& workload,
                         const std::vector<balance::RankHost>& ranks) {
  constexpr std::chrono::seconds kAnswerPatience{5};
  if (record.fits(hosts, workers)) return {record.seconds_per_micro_batch, "speeds of the checkpoint", ""};
  if (prometheus.empty()) return {};
  const auto answer = telemetry::query_prometheus(prometheus, earlier_runs_query(workload), kAnswerPatience);
  const auto earlier = earlier_speeds(answer.samples, ranks);
  if (earlier.complete()) {
    return {earlier.seconds_per_micro_batch, fmt::format("earlier runs, from {}: {}", prometheus, earlier.evidence),
            ""};
  }
  const std::string known =
      earlier.evidence.empty() ? "no rank's micro-batches" : "micro-batches only " + earlier.evidence;
  return {{},
          "",
          fmt::format("balance: {} {}; the first micro-batch assignment is by a probe", prometheus,
                      answer.problem.empty() ? "knows " + known : "does not answer: " + answer.problem)};
}

std::vector<balance::RankHost> hosts_of_ranks(const RunContext& run) {
  const std::size_t ranks = run.communicator.size();
  std::string mine = run.device.info().model;
  mine.resize(kNameWidth, '\0');
  std::string all(kNameWidth * ranks, '\0');
  run.communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                              {"start", 0, run.timeout()});
  std::vector<balance::RankHost> hosts;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::string name = all.substr(r * kNameWidth, kNameWidth);
    hosts.push_back({run.communicator.topology().host_name(r), name.substr(0, name.find('\0'))});
  }
  return hosts;
}

std::vector<double> speeds_of_ranks(const RunContext& run, const Graph& graph) {
  std::vector<double> speeds(run.communicator.size(), 1.0);
  const BalanceOptions& balance = run.job.balance;
  if (speeds.size() == 1 || config::max_parts(run.job) == 1) return speeds;
  if (!balance.weights.empty()) {
    auto weights =
        balance::weights_of_ranks(balance.weights, hosts_of_ranks(run), run.job.place_of("job.balance.weights").text());
    const bool all_compute = std::all_of(weights.begin(), weights.end(), [](double weight) { return weight > 0; });
    return all_compute ? weights : speeds;
  }
  if (balance.prometheus.empty()) return speeds;
  const auto hosts = hosts_of_ranks(run);
  if (run.leads()) {
    const KnownSpeeds known = known_speeds({}, {}, {}, balance.prometheus, workload_of(graph), hosts);
    for (std::size_t r = 0; r < known.seconds_per_micro_batch.size(); ++r)
      speeds[r] = 1 / known.seconds_per_micro_batch[r];
  }
  run.communicator.broadcast(std::as_writable_bytes(std::span(speeds)), 0, {"start", 0, run.timeout()});
  return speeds;
}

}  // namespace lockstep::train
