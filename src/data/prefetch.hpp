// What the loader's threads do ahead of the step: which shards come next (PrefetchSchedule), how many threads load
// them, and how far ahead (PrefetchTuner). The result of a run never depends on it. Neither is thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::data {

struct ShardKey {
  std::uint64_t step = 0;
  int shard = 0;
  auto operator<=>(const ShardKey&) const = default;
};

/// Which shard of which step to load next: the assigned shards of each step, step after step.
class PrefetchSchedule {
 public:
  PrefetchSchedule(std::uint64_t first_step, std::uint64_t last_step) : step_(first_step), last_(last_step) {}

  /// From `from_step` on these shards are loaded; what was planned for later steps is planned again.
  void assign(std::uint64_t from_step, std::vector<int> shards);
  /// Somebody else loads this one.
  void take(const ShardKey& key);
  /// The next one that nobody took, without moving on.
  [[nodiscard]] std::optional<ShardKey> peek();
  /// Moves past what peek() gave.
  void pop();
  [[nodiscard]] bool wants(const ShardKey& key) const;

 private:
  struct Assignment {
    std::uint64_t from_step;
    std::vector<int> shards;
  };
  [[nodiscard]] const std::vector<int>* shards_of(std::uint64_t step) const;

  std::vector<Assignment> assignments_;  ///< by from_step
  std::vector<ShardKey> taken_;          ///< at or after the cursor
  std::uint64_t step_, last_;            ///< the cursor; steps end before last_
  std::size_t place_ = 0;
};

struct PrefetchLimits {
  int threads = 0;  ///< fixed; 0: tuned between 1 and max_threads
  int depth = 0;    ///< fixed; 0: tuned between 2 and max_depth
  int max_threads = 1;
  int max_depth = 64;
};

/// Decides from the time that the step waited. After each window of gets: waited more than 2 % of the time: a thread
/// more and twice the depth. No wait to speak of for 16 windows: a thread less; if that brings waiting back, the thread
/// stays from then on.
class PrefetchTuner {
 public:
  explicit PrefetchTuner(const PrefetchLimits& limits);
  /// One get() that ended at `now` (seconds of any clock) after it had waited for `waited` seconds.
  void record(double now, double waited);
  [[nodiscard]] int threads() const { return threads_; }
  [[nodiscard]] int depth() const { return depth_; }

 private:
  void decide(double share);
  void grow();
  PrefetchLimits limits_;
  int threads_, depth_;
  int min_threads_ = 1;
  int gets_ = 0, calm_ = 0;
  bool warm_ = false, shrunk_ = false;
  double start_ = -1, waited_ = 0;
};

}  // namespace lockstep::data
