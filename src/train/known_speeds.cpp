#include "train/known_speeds.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>

#include "core/whole_file.hpp"

namespace lockstep::train {

namespace {

std::string path_of(const std::string& run_directory) {
  return run_directory + "/balance.json";
}

}  // namespace

void write_balance_record(const std::string& run_directory, const balance::Record& record) {
  if (record.hosts.empty()) return;
  const nlohmann::ordered_json json{
      {"hosts", record.hosts}, {"workers", record.workers}, {"seconds_per_shard", record.seconds_per_shard}};
  (void)replace_whole_file(path_of(run_directory), json.dump(2) + "\n");
}

balance::Record read_balance_record(const std::string& run_directory) {
  std::ifstream file(path_of(run_directory));
  const auto json = nlohmann::json::parse(file, nullptr, false);
  try {
    return {json.at("hosts"), json.at("workers"), json.at("seconds_per_shard")};
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
  return !seconds_per_shard.empty() && std::all_of(seconds_per_shard.begin(), seconds_per_shard.end(), known);
}

std::string earlier_runs_query(const std::string& workload) {
  return fmt::format("avg by (host, device) (last_over_time(lockstep_device_shard_seconds{{workload=\"{}\"}}[30d]))",
                     workload);
}

EarlierSpeeds earlier_speeds(const std::vector<telemetry::PrometheusSample>& samples,
                             const std::vector<balance::RankPlace>& ranks) {
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
    speeds.seconds_per_shard.push_back(seconds);
  }
  speeds.evidence = ranks_text("by host and device", by_host);
  const std::string rest = ranks_text("by device", by_device);
  speeds.evidence += (speeds.evidence.empty() || rest.empty() ? "" : ", ") + rest;
  return speeds;
}

KnownSpeeds known_speeds(const balance::Record& record, const std::vector<std::string>& hosts,
                         const std::vector<int>& workers, const std::string& prometheus, const std::string& workload,
                         const std::vector<balance::RankPlace>& places) {
  constexpr std::chrono::seconds kAnswerPatience{5};
  if (record.fits(hosts, workers)) return {record.seconds_per_shard, "speeds of the checkpoint", ""};
  if (prometheus.empty()) return {};
  const auto answer = telemetry::query_prometheus(prometheus, earlier_runs_query(workload), kAnswerPatience);
  const auto earlier = earlier_speeds(answer.samples, places);
  if (earlier.complete()) {
    return {earlier.seconds_per_shard, fmt::format("earlier runs, from {}: {}", prometheus, earlier.evidence), ""};
  }
  const std::string known = earlier.evidence.empty() ? "no rank's shards" : "shards only " + earlier.evidence;
  return {{},
          "",
          fmt::format("balance: {} {}; the first shares are by a probe", prometheus,
                      answer.problem.empty() ? "knows " + known : "does not answer: " + answer.problem)};
}

}  // namespace lockstep::train
