#include "core/flight_recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "core/files.hpp"

namespace lockstep {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) result += c;
  }
  return result + '"';
}

}  // namespace

void FlightRecorder::set_step(std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
}

std::uint64_t FlightRecorder::enqueue(const char* kind, int peer, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  FlightEntry& entry = ring_[count_ % ring_.size()];
  entry = {count_, kind, step_, peer, bytes, now(), -1, -1};
  return count_++;
}

FlightEntry* FlightRecorder::find(std::uint64_t number) {
  FlightEntry& entry = ring_[number % ring_.size()];
  return entry.number == number && number < count_ ? &entry : nullptr;
}

void FlightRecorder::start(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (FlightEntry* entry = find(number)) entry->started = now();
  tick();
}

void FlightRecorder::finish(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (FlightEntry* entry = find(number)) entry->done = now();
  tick();
}

void FlightRecorder::note(const char* kind, int peer, std::uint64_t bytes) {
  const std::uint64_t number = enqueue(kind, peer, bytes);
  const std::lock_guard lock(mutex_);
  if (FlightEntry* entry = find(number)) entry->started = entry->done = entry->enqueued;
  tick();
}

Activity FlightRecorder::enter(const char* name, std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  Activity before = activity_;
  activity_ = {name, step, -1, "", now()};
  tick();
  return before;
}

void FlightRecorder::restore(const Activity& activity) {
  const std::lock_guard lock(mutex_);
  activity_ = activity;
  tick();
}

void FlightRecorder::waits_for(int peer, const std::string& missing) {
  const std::lock_guard lock(mutex_);
  activity_.peer = peer;
  activity_.missing = missing;
}

Activity FlightRecorder::activity() const {
  const std::lock_guard lock(mutex_);
  return activity_;
}

std::vector<FlightEntry> FlightRecorder::entries() const {
  const std::lock_guard lock(mutex_);
  std::vector<FlightEntry> list;
  const std::uint64_t kept = std::min<std::uint64_t>(count_, ring_.size());
  for (std::uint64_t i = count_ - kept; i < count_; ++i) list.push_back(ring_[i % ring_.size()]);
  return list;
}

std::string FlightRecorder::summary() const {
  const Activity in = activity();
  std::string text = fmt::format("{} of step {} for {:.1f} s", in.name, in.step, now() - in.since);
  if (in.peer >= 0) text += fmt::format(", waiting for rank {}", in.peer);
  if (!in.missing.empty()) text += ": " + in.missing;
  return text;
}

std::string FlightRecorder::json(int rank, const std::string& host) const {
  const Activity in = activity();
  std::string text = fmt::format(
      "{{\"rank\": {}, \"host\": {}, \"now\": {:.6f},\n \"activity\": {{\"name\": {}, \"step\": {}, \"peer\": {}, "
      "\"missing\": {}, \"since\": {:.6f}}},\n \"entries\": [",
      rank, quoted(host), now(), quoted(in.name), in.step, in.peer, quoted(in.missing), in.since);
  const char* separator = "\n";
  for (const FlightEntry& entry : entries()) {
    text += fmt::format(
        "{}  {{\"number\": {}, \"kind\": {}, \"step\": {}, \"peer\": {}, \"bytes\": {}, \"enqueued\": {:.6f}, "
        "\"started\": {:.6f}, \"done\": {:.6f}}}",
        separator, entry.number, quoted(entry.kind), entry.step, entry.peer, entry.bytes, entry.enqueued, entry.started,
        entry.done);
    separator = ",\n";
  }
  return text + "\n ]}\n";
}

ActivityScope::ActivityScope(FlightRecorder* recorder, const char* name, std::uint64_t step)
    : recorder_(recorder), exceptions_(std::uncaught_exceptions()) {
  if (recorder_ != nullptr) before_ = recorder_->enter(name, step);
}

ActivityScope::~ActivityScope() {
  if (recorder_ != nullptr && std::uncaught_exceptions() == exceptions_) recorder_->restore(before_);
}

std::string dump_flight(const FlightRecorder& recorder, const std::string& folder, int rank, const std::string& host) {
  const std::string path = fmt::format("{}/rank-{}.json", folder, rank);
  // Another rank's failure may kill this one at any moment: half a dump would be worse than none.
  return try_write_whole_file(path, recorder.json(rank, host)).empty() ? path : "";
}

}  // namespace lockstep
