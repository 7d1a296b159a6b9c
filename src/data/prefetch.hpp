// The loader's decisions about loading ahead: which micro-batches come next (PrefetchSchedule), how many threads load
// them, and how far ahead (PrefetchTuner). They never influence the result of a run. Neither class is thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::data {

struct MicroBatchKey {
  std::uint64_t step = 0;
  int micro_batch = 0;
  auto operator<=>(const MicroBatchKey&) const = default;
};

/// Which micro-batch of which step to load next: the assigned micro-batches of each step, step after step.
class PrefetchSchedule {
 public:
  PrefetchSchedule(std::uint64_t first_step, std::uint64_t last_step) : step_(first_step), last_(last_step) {}

  /// From `from_step` on, these micro-batches are loaded; later steps are planned again.
  void assign(std::uint64_t from_step, std::vector<int> micro_batches);
  /// Another thread loads this one.
  void take(const MicroBatchKey& key);
  /// The next one that has not been taken, without advancing.
  [[nodiscard]] std::optional<MicroBatchKey> peek();
  /// Advances past the result of peek().
  void pop();
  bool wants(const MicroBatchKey& key) const;

 private:
  struct Assignment {
    std::uint64_t from_step;
    std::vector<int> micro_batches;
  };
  const std::vector<int>* micro_batches_of(std::uint64_t step) const;

  std::vector<Assignment> assignments_;  ///< ascending by from_step
  std::vector<MicroBatchKey> taken_;     ///< at or after the cursor
  std::uint64_t step_, last_;            ///< the cursor; steps end before last_
  std::size_t place_ = 0;
};

struct PrefetchLimits {
  int threads = 0;  ///< fixed; 0: tuned between 1 and max_threads
  int depth = 0;    ///< fixed; 0: tuned between 2 and max_depth
  int max_threads = 1;
  int max_depth = 64;
};

/// Decides from the time that steps waited, after each window of gets. If more than 2 % of the time was waiting: one
/// more thread and twice the depth. If almost none was for 16 windows: one thread less; if that makes steps wait again,
/// the thread is kept from then on.
class PrefetchTuner {
 public:
  explicit PrefetchTuner(const PrefetchLimits& limits);
  /// Reports a get() that ended at `now` (seconds of any clock) after it had waited for `waited` seconds.
  void record(double now, double waited);
  int threads() const { return threads_; }
  int depth() const { return depth_; }

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
