#include "tools/tune/probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <variant>

#include "core/median.hpp"
#include "launch/child.hpp"
#include "observe/telemetry/event_json.hpp"

namespace lockstep::tune {

namespace {

constexpr std::size_t kFirstSteps = 2;

}  // namespace

double Probe::step_seconds() const {
  std::vector<double> seconds;
  for (std::size_t i = kFirstSteps; i < steps.size(); ++i) seconds.push_back(steps[i].seconds - steps[i - 1].seconds);
  return seconds.empty() ? std::numeric_limits<double>::quiet_NaN() : median(seconds);
}

double Probe::data_wait() const {
  if (steps.size() <= kFirstSteps) return 0;
  double waited = 0;
  for (std::size_t i = kFirstSteps; i < steps.size(); ++i) waited += steps[i].data_wait_seconds;
  return waited / (steps.back().seconds - steps[kFirstSteps - 1].seconds);
}

std::int64_t Probe::peak_memory() const {
  double most = 0;
  if (end && end->peak_memory_bytes_by_rank) {
    for (const auto& [rank, bytes] : *end->peak_memory_bytes_by_rank) most = std::max(most, bytes);
  }
  return most;
}

Probe read_probe(const std::string& events) {
  Probe probe;
  std::ifstream file(events, std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    const auto read = telemetry::read_event(line);
    if (!read.event) continue;
    if (const auto* start = std::get_if<events::Start>(&*read.event)) probe.start = *start;
    if (const auto* step = std::get_if<events::Step>(&*read.event)) probe.steps.push_back(*step);
    if (const auto* end = std::get_if<events::End>(&*read.event)) probe.end = *end;
  }
  return probe;
}

Probe run_probe(const ProbeSetup& setup, const std::string& name, std::int64_t steps,
                const std::vector<std::string>& overrides) {
  const std::string directory = setup.directory + "/" + name, log = directory + ".log";
  std::filesystem::remove_all(directory);
  std::filesystem::remove(log);
  std::filesystem::create_directories(setup.directory);
  std::vector<std::string> command = {launch::own_program(), "train"};
  if (!setup.job.empty()) command.push_back(setup.job);
  command.insert(command.end(), setup.overrides.begin(), setup.overrides.end());
  command.insert(command.end(), {"evaluate=never", "checkpoint=never", fmt::format("steps={}", steps)});
  command.insert(command.end(), overrides.begin(), overrides.end());
  command.push_back("run_directory=" + directory);
  command.insert(command.end(), {"--log", "json"});  // without checkpoints there is no file of events
  if (setup.ranks > 1) command.insert(command.end(), {"--ranks", fmt::format("{}", setup.ranks)});
  launch::Child child(command, {.output = log, .environment = {}});
  std::optional<int> code;
  while (!code) code = child.wait(std::chrono::minutes(1));
  Probe probe = read_probe(log);
  probe.code = *code;
  if (probe.failed()) {
    probe.message = child.killed() ? fmt::format("ended by signal {}", *code - 128) : launch::message_in_log(log);
  }
  return probe;
}

}  // namespace lockstep::tune
