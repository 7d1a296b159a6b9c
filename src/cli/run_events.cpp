#include "cli/run_events.hpp"

#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "core/untrusted.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

std::int64_t step_of(const EventJson& event) {
  return integer_or(event, "step", std::int64_t{0});
}

/// Whether a line is an event, as far as it is looked at here: no line that was torn when a run was killed, nor one of
/// another program.
bool is_event(const EventJson& line) {
  if (!line.is_object() || !line.value("event", EventJson("")).is_string()) return false;
  for (const char* key : {"time", "ranks"}) {
    if (line.contains(key) && !line[key].is_number()) return false;
  }
  try {
    (void)step_of(line);
    return true;
  } catch (const EventJson::exception&) {
    return false;
  }
}

/// What was done again replaces what was told before.
void add(std::vector<EventJson>& events, EventJson event) {
  while (!events.empty() && step_of(events.back()) >= step_of(event)) events.pop_back();
  events.push_back(std::move(event));
}

/// Joules by rank since its start, as a start's last step told them, go to the run.
void add_energy(const EventJson& joules, RunEvents& run) {
  if (!joules.is_object()) return;
  for (const auto& [rank, value] : joules.items()) {
    run.joules += value.is_number() ? value.get<double>() : 0;
    run.metered.insert(rank);
  }
}

}  // namespace

RunEvents read_run_events(const std::string& run_directory) {
  const std::string path = run_directory + "/events.jsonl";
  std::ifstream file(path);
  RunEvents run;
  double began = 0, last = 0;
  EventJson joules;
  const auto close_start = [&] {
    if (!run.start.is_null()) run.rank_seconds += (last - began) * run.start.value("ranks", 1.0);
    add_energy(std::exchange(joules, nullptr), run);
  };
  for (std::string line; std::getline(file, line);) {
    auto event = nests_too_deep(line) ? EventJson() : EventJson::parse(line, nullptr, false);
    if (!is_event(event)) continue;
    const std::string name = event.value("event", "");
    const double time = event.value("time", 0.0);
    if (name == "start") {
      close_start();
      began = time;
      run.start = event;
      run.end = nullptr;
    }
    last = time;
    if (name == "step") {
      if (event.contains("energy_joules")) joules = event["energy_joules"];
      add(run.steps, std::move(event));
    } else if (name == "eval") {
      add(run.evals, std::move(event));
    } else {
      if (name == "end") run.end = event;
      run.others.push_back(std::move(event));
    }
  }
  close_start();
  if (!run.start.is_null()) return run;
  throw Error(ExitCode::usage, fmt::format("{}: expected the events of a run, found none; name a run directory of a "
                                           "run that has started",
                                           path));
}

}  // namespace lockstep::cli
