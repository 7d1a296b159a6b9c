#include "observe/goodput.hpp"

#include <algorithm>
#include <fstream>
#include <variant>

#include "observe/telemetry/event_json.hpp"

namespace lockstep::observe {
namespace {

constexpr double kNoteSeconds = 30, kNoteShare = 0.001;

double total(const events::Goodput& sums) {
  return sums.useful_seconds + sums.repeated_seconds + sums.checkpoint_seconds + sums.data_wait_seconds +
         sums.peer_wait_seconds + sums.restart_seconds;
}

}  // namespace

Goodput::Goodput(const std::string& run_directory, double now) : mark_(now), noted_(now) {
  if (!run_directory.empty()) read(run_directory + "/events.jsonl");
}

void Goodput::read(const std::string& path) {
  std::ifstream file(path);
  bool ended = true;
  double counted = 0, alive = 0;  // times: until then the sums count; the newest sign of training
  for (std::string line; std::getline(file, line);) {
    const telemetry::ReadEvent read = telemetry::read_event(line);
    if (!read.event) continue;
    const events::Event& event = *read.event;
    if (const auto* goodput = std::get_if<events::Goodput>(&event)) {
      sums_ = *goodput;
      counted = alive = read.time;
    } else if (const auto* step = std::get_if<events::Step>(&event)) {
      furthest_ = std::max(furthest_, step->step);
      alive = read.time;
    } else if (std::holds_alternative<events::Start>(event)) {
      // An attempt that died told no more of its last steps than that they were done.
      if (!ended) sums_.useful_seconds += std::max(0.0, alive - counted);
      ended = false;
      counted = alive = read.time;
    } else if (std::holds_alternative<events::End>(event)) {
      ended = true;
    }
  }
  if (ended) return;
  sums_.useful_seconds += std::max(0.0, alive - counted);
  mark_ = std::min(mark_, alive);
}

void Goodput::training_begins(double now) {
  sums_.restart_seconds += std::max(0.0, now - mark_);
  mark_ = noted_ = now;
}

void Goodput::step_done(std::int64_t step, const Waits& waits, double now) {
  double left = std::max(0.0, now - mark_);
  const auto take = [&](double& sum, double seconds) {
    const double taken = std::clamp(seconds, 0.0, left);
    sum += taken;
    left -= taken;
  };
  take(sums_.checkpoint_seconds, waits.checkpoint - waits_.checkpoint);
  take(sums_.data_wait_seconds, waits.data - waits_.data);
  take(sums_.peer_wait_seconds, waits.peers - waits_.peers);
  (step <= furthest_ ? sums_.repeated_seconds : sums_.useful_seconds) += left;
  sums_.step = step;
  waits_ = waits;
  mark_ = now;
}

bool Goodput::is_due(double now) const {
  return now - noted_ >= std::max(kNoteSeconds, kNoteShare * total(sums_));
}

}  // namespace lockstep::observe
