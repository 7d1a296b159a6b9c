#include "cli/run_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

constexpr std::size_t kMostSteps = 16384;

/// A repeated step replaces what was reported before about that step and later ones.
template <class Event>
void add(std::vector<Event>& events, Event event) {
  while (!events.empty() && events.back().step >= event.step) events.pop_back();
  events.push_back(std::move(event));
}

/// Of the steps before the last one only those that `stride` divides stay; it grows until they are few enough.
void add_step(RunEvents& run, events::Step step, std::int64_t& stride) {
  while (!run.skipped.empty() && run.skipped.back() >= step.step) run.skipped.pop_back();
  if (step.skipped.value_or(false)) run.skipped.push_back(step.step);
  const auto is_between = [&](const events::Step& one) { return one.step % stride != 0; };
  if (!run.steps.empty() && is_between(run.steps.back())) run.steps.pop_back();
  while (run.steps.size() >= kMostSteps) {
    stride *= 2;
    std::erase_if(run.steps, is_between);
  }
  add(run.steps, std::move(step));
}

// Earlier versions reported each GPU and no sum.
double joules_of_all(const events::Step& step) {
  double sum = 0;
  for (const auto& [rank, joules] : *step.energy_joules) sum += joules;
  return step.energy_joules_of_all.value_or(sum);
}

}  // namespace

RunEvents read_run_events(const std::string& run_directory) {
  const std::string path = run_directory + "/events.jsonl";
  std::ifstream file(path);
  RunEvents run;
  bool started = false;
  double began = 0, last = 0;
  double joules = 0;  // from the newest step of this start
  std::int64_t stride = 1;
  const auto close_start = [&] {
    if (started) run.rank_seconds += (last - began) * run.start.ranks;
    run.joules += std::exchange(joules, 0);
  };
  for (std::string line; std::getline(file, line);) {
    auto read = telemetry::read_event(line);
    if (!read.event) continue;
    if (const auto* start = std::get_if<events::Start>(&*read.event)) {
      close_start();
      started = true;
      began = last = read.time;
      run.start = *start;
      run.end.reset();
    }
    last = std::max(last, read.time);  // a step may be written late, before what came after it
    if (auto* step = std::get_if<events::Step>(&*read.event)) {
      if (step->energy_joules) joules = joules_of_all(*step);
      for (const auto& [rank, value] : step->energy_joules.value_or(events::ByRank{})) run.metered.insert(rank);
      add_step(run, std::move(*step), stride);
    } else if (auto* eval = std::get_if<events::Evaluation>(&*read.event)) {
      add(run.evals, std::move(*eval));
    } else if (const auto* goodput = std::get_if<events::Goodput>(&*read.event)) {
      run.goodput = *goodput;
    } else {
      if (const auto* end = std::get_if<events::End>(&*read.event)) run.end = *end;
      run.others.push_back(std::move(read));
    }
  }
  close_start();
  if (started) return run;
  throw Error(ExitCode::usage, fmt::format("{}: expected the events of a run, found none; name a run directory of a "
                                           "run that has started",
                                           path));
}

}  // namespace lockstep::cli
