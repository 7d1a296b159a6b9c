#include "data/prefetch_tuner.hpp"

#include <algorithm>

namespace lockstep::data {

namespace {

constexpr int kWindowGets = 16, kCalmWindows = 16, kFirstDepth = 4;
constexpr double kWindowSeconds = 0.05, kWaiting = 0.02, kCalm = 0.002;

}  // namespace

PrefetchTuner::PrefetchTuner(const PrefetchLimits& limits)
    : limits_(limits),
      threads_(limits.threads > 0 ? limits.threads : 1),
      depth_(limits.depth > 0 ? limits.depth : std::min(kFirstDepth, limits.max_depth)) {}

void PrefetchTuner::record(double now, double waited) {
  if (start_ < 0) start_ = now - waited;
  waited_ += waited;
  ++gets_;
  const double length = now - start_;
  if (gets_ < kWindowGets || length < kWindowSeconds) return;
  if (warm_) decide(waited_ / length);  // the first window fills caches and says nothing
  warm_ = true;
  start_ = now;
  waited_ = 0;
  gets_ = 0;
}

void PrefetchTuner::decide(double share) {
  if (share > kWaiting) {
    if (shrunk_) fewest_threads_ = std::min(threads_ + 1, limits_.max_threads);
    grow();
  }
  shrunk_ = false;
  calm_ = share < kCalm ? calm_ + 1 : 0;
  if (calm_ < kCalmWindows || limits_.threads > 0 || threads_ <= fewest_threads_) return;
  --threads_;
  shrunk_ = true;
  calm_ = 0;
}

void PrefetchTuner::grow() {
  if (limits_.threads == 0) threads_ = std::min(threads_ + 1, limits_.max_threads);
  if (limits_.depth == 0) depth_ = std::min(2 * depth_, limits_.max_depth);
}

}  // namespace lockstep::data
