#include "data/prefetch.hpp"

#include <algorithm>

namespace lockstep::data {

namespace {

constexpr int kWindowGets = 16, kCalmWindows = 16, kFirstDepth = 4;
constexpr double kWindowSeconds = 0.05, kWaiting = 0.02, kCalm = 0.002;

}  // namespace

void PrefetchSchedule::assign(std::uint64_t from_step, std::vector<int> micro_batches) {
  std::erase_if(assignments_, [&](const Assignment& entry) { return entry.from_step >= from_step; });
  assignments_.push_back({from_step, std::move(micro_batches)});
  while (assignments_.size() > 1 && assignments_[1].from_step <= step_) assignments_.erase(assignments_.begin());
  if (step_ < from_step) return;
  step_ = from_step;
  place_ = 0;
}

const std::vector<int>* PrefetchSchedule::micro_batches_of(std::uint64_t step) const {
  const std::vector<int>* micro_batches = nullptr;
  for (const Assignment& entry : assignments_) {
    if (entry.from_step <= step) micro_batches = &entry.micro_batches;
  }
  return micro_batches;
}

bool PrefetchSchedule::wants(const MicroBatchKey& key) const {
  const std::vector<int>* micro_batches = micro_batches_of(key.step);
  return micro_batches != nullptr &&
         std::find(micro_batches->begin(), micro_batches->end(), key.micro_batch) != micro_batches->end();
}

void PrefetchSchedule::take(const MicroBatchKey& key) {
  if (key.step >= step_) taken_.push_back(key);
}

std::optional<MicroBatchKey> PrefetchSchedule::peek() {
  while (step_ < last_) {
    const std::vector<int>* micro_batches = micro_batches_of(step_);
    // nothing is assigned yet, or no micro-batches from here on: there is nothing to load
    if (micro_batches == nullptr || (micro_batches->empty() && assignments_.back().from_step <= step_))
      return std::nullopt;
    for (; place_ < micro_batches->size(); ++place_) {
      const MicroBatchKey key{step_, (*micro_batches)[place_]};
      if (std::find(taken_.begin(), taken_.end(), key) == taken_.end()) return key;
    }
    std::erase_if(taken_, [&](const MicroBatchKey& key) { return key.step <= step_; });
    ++step_;
    place_ = 0;
  }
  return std::nullopt;
}

void PrefetchSchedule::pop() {
  ++place_;
}

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
  if (warm_) decide(waited_ / length);  // the first window only fills caches and is ignored
  warm_ = true;
  start_ = now;
  waited_ = 0;
  gets_ = 0;
}

void PrefetchTuner::decide(double share) {
  if (share > kWaiting) {
    if (shrunk_) min_threads_ = std::min(threads_ + 1, limits_.max_threads);
    grow();
  }
  shrunk_ = false;
  calm_ = share < kCalm ? calm_ + 1 : 0;
  if (calm_ < kCalmWindows || limits_.threads > 0 || threads_ <= min_threads_) return;
  --threads_;
  shrunk_ = true;
  calm_ = 0;
}

void PrefetchTuner::grow() {
  if (limits_.threads == 0) threads_ = std::min(threads_ + 1, limits_.max_threads);
  if (limits_.depth == 0) depth_ = std::min(2 * depth_, limits_.max_depth);
}

}  // namespace lockstep::data
