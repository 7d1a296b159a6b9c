// The flight recorder: a rank's last operations and its current activity, to find out why a run hangs.
//
// A ring buffer of fixed size; the oldest entry is overwritten. Every call takes one short lock, so any thread may
// record while another reads. Names are string literals: nothing is copied while recording. Times are seconds since the
// recorder was made; -1: not yet.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/spans.hpp"

namespace lockstep {

struct FlightEntry {
  std::uint64_t number = 0;  ///< counts all entries, from 0
  const char* kind = "";     ///< "send", "receive", "partial", "reduce", ...
  std::uint64_t step = 0;
  int peer = -1;  ///< -1: none, or all
  std::uint64_t bytes = 0;
  double enqueued = 0, started = -1, done = -1;
};

/// What the rank's main thread is doing, and, if it waits, for which rank.
struct Activity {
  const char* name = "start";
  std::uint64_t step = 0;
  int peer = -1;
  std::string missing;  ///< "its partial sum of bucket 0 has not come"
  double since = 0;     ///< seconds, as in FlightEntry
};

class FlightRecorder {
 public:
  explicit FlightRecorder(std::size_t capacity = 512) : ring_(capacity) {}

  /// Later entries carry this step.
  void set_step(std::uint64_t step);
  [[nodiscard]] std::uint64_t enqueue(const char* kind, int peer, std::uint64_t bytes);
  void start(std::uint64_t number);
  void finish(std::uint64_t number);
  /// Records an operation without duration.
  void note(const char* kind, int peer, std::uint64_t bytes);

  /// Signals progress; start() and finish() count as well. A watcher considers a rank hung if its count does not
  /// change.
  void tick() { ticks_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t ticks() const { return ticks_.load(std::memory_order_relaxed); }

  /// Returns the previous activity.
  Activity enter(const char* name, std::uint64_t step);
  void restore(const Activity& activity);
  void waits_for(int peer, const std::string& missing);
  Activity activity() const;

  /// Oldest first.
  std::vector<FlightEntry> entries() const;
  /// "reduce of step 17 for 12.0 s, waiting for rank 2: its partial sum of bucket 0 has not come"
  std::string summary() const;
  /// One JSON object: rank, host, now, activity, entries.
  std::string json(int rank, const std::string& host) const;

 private:
  double now() const { return seconds_since(made_); }
  FlightEntry* find(std::uint64_t number);

  const Clock::time_point made_ = Clock::now();
  std::atomic<std::uint64_t> ticks_{0};
  mutable std::mutex mutex_;
  std::vector<FlightEntry> ring_;
  std::uint64_t count_ = 0, step_ = 0;
  Activity activity_;
};

/// The activity during this object's lifetime. If an exception unwinds it, the activity is left in place, for the dump.
/// The recorder may be null.
class ActivityScope {
 public:
  ActivityScope(FlightRecorder* recorder, const char* name, std::uint64_t step);
  ~ActivityScope();
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

 private:
  FlightRecorder* recorder_;
  Activity before_;
  int exceptions_;
};

/// Writes json() to <folder>/rank-<rank>.json and creates the folder; returns the path, or "" on failure (a dump must
/// never hide the error that led to it).
std::string dump_flight(const FlightRecorder& recorder, const std::string& folder, int rank, const std::string& host);

}  // namespace lockstep
