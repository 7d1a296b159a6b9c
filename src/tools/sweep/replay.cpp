#include "tools/sweep/replay.hpp"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files.hpp"
#include "core/say.hpp"
#include "launch/child.hpp"
#include "launch/stop_signals.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "tools/sweep/trial_events.hpp"

namespace lockstep::sweep {

namespace {

constexpr double kReplayPollSeconds = 0.02;

std::int64_t steps_done(const std::string& run_directory) {
  const auto list = checkpoint::list_checkpoints(run_directory + "/checkpoints");
  return list.empty() ? 0 : checkpoint::step_of(list.front()).value_or(0);
}

/// The exit code of a training, to which signals are passed on. One that ends by the first of them, since it has not
/// begun or is over, was interrupted.
int run(const std::vector<std::string>& command, launch::StopSignals& signals) {
  launch::Child child(command, {.output = "", .environment = {}, .trains = launch::Trains::in_process});
  int passed_on = 0;
  while (true) {
    if (const auto code = child.poll()) {
      const bool ended_by_it = child.killed() && *code == 128 + SIGUSR1 && passed_on > 0;
      return ended_by_it ? static_cast<int>(ExitCode::interrupted) : *code;
    }
    for (; passed_on < signals.count(); ++passed_on) child.signal(SIGUSR1);
    (void)signals.sleep(kReplayPollSeconds);
  }
}

/// Says whether the parameters are the trial's; 0 or, as `lockstep checkpoint diff`, 65.
int compare(const History& history, const std::string& run_directory) {
  TrialEvents events(run_directory);
  events.read();
  const std::string found = events.end() ? events.end()->parameters_sha256 : "";
  const bool same = found == history.parameters_sha256;
  say("{} {} of trial {}{}\n", run_directory, same ? "has the parameters" : "does not have the parameters",
      history.trial, same ? "" : fmt::format(": SHA-256 {}, now {}", history.parameters_sha256, found));
  return static_cast<int>(same ? ExitCode::done : ExitCode::data);
}

}  // namespace

History read_history(const std::string& file) {
  const auto text = read_whole_file(file);
  const auto json = nlohmann::ordered_json::parse(text.value_or(""), nullptr, /*allow_exceptions=*/false);
  try {
    History history{json.at("trial"), json.at("parameters_sha256"), {}};
    for (const auto& leg : json.at("legs")) {
      history.legs.push_back({leg.value("until", std::int64_t{0}), leg.at("job").dump(2) + "\n"});
    }
    return history;
  } catch (const nlohmann::json::exception&) {
    throw Error(ExitCode::data, fmt::format("{}: expected the best-history.json of a sweep with method: population, "
                                            "found {}",
                                            file, text ? "something else" : "no such file"));
  }
}

int replay(const History& history, const std::string& run_directory, const std::vector<std::string>& words) {
  launch::StopSignals signals;
  std::filesystem::create_directories(run_directory);
  for (std::size_t i = 0; i < history.legs.size(); ++i) {
    const HistoryLeg& leg = history.legs[i];
    if (leg.until > 0 && steps_done(run_directory) >= leg.until) continue;
    const std::string job = fmt::format("{}/leg-{}.yaml", run_directory, i);
    write_whole_file(job, leg.job);
    std::vector<std::string> command = {launch::own_program(), "train", job};
    command.insert(command.end(), words.begin(), words.end());
    if (i > 0) command.emplace_back("--change-settings");
    if (leg.until > 0) command.insert(command.end(), {"--stop-at", fmt::format("{}", leg.until)});
    const int code = run(command, signals);
    const bool got_there = code == static_cast<int>(ExitCode::interrupted) && leg.until > 0 && signals.count() == 0 &&
                           steps_done(run_directory) >= leg.until;
    if (code != 0 && !got_there) return code;
  }
  return compare(history, run_directory);
}

}  // namespace lockstep::sweep
