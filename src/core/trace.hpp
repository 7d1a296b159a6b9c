// Spans of some steps of one rank, for a timeline. Where nobody traces there is no recorder, and a span costs a test of
// a pointer.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/spans.hpp"

namespace lockstep {

/// Seconds of this host's steady clock: what spans are measured in.
[[nodiscard]] inline double steady_seconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// Where a span stands in its rank's timeline. From 1 on: workers.
inline constexpr int kPhaseTrack = 0;      ///< the main thread's phases
inline constexpr int kReduceTrack = 1000;  ///< adding as the owner of a slice
inline constexpr int kBucketTrack = 1001;  ///< buckets under way; these may overlap
/// From here on: threads that work beside the steps. Their spans say which step they are for; where a step does wait
/// for them, a span of the tracks before says so.
inline constexpr int kBesideTrack = 1100;
inline constexpr int kCheckpointTrack = kBesideTrack;  ///< the checkpoint's writer
[[nodiscard]] inline constexpr int prefetch_track(int thread) {
  return kCheckpointTrack + 1 + thread;
}
/// From here on: what a GPU did, by its own clock, a track for each of its streams.
inline constexpr int kGpuTrack = 2000;
[[nodiscard]] inline constexpr int worker_track(int worker) {
  return worker + 1;
}

// Spans of a worker that computes a part of a model: what it waits for.
inline constexpr const char* kActivationWait = "activations";         ///< of other parts
inline constexpr const char* kGradientWait = "activation gradients";  ///< the same, in backward
inline constexpr const char* kSendWait = "sends to other parts";      ///< to have left

struct TraceSpan {
  const char* name = "";  ///< a literal
  int track = kPhaseTrack;
  std::uint64_t step = 0;  ///< from 0
  int item = -1;  ///< the shard of a worker's or a prefetcher's span, the bucket of the reducer's; -1: of no one
  double start = 0, end = 0;
  double kernels = -1;  ///< seconds of it inside kernels; -1: it computes nothing
};

/// Who hears of spans while they last, for tools that look at a process from outside. By any thread: ranges are of the
/// thread that begins and ends them, and nest.
class TraceRanges {
 public:
  TraceRanges() = default;
  TraceRanges(const TraceRanges&) = delete;
  TraceRanges& operator=(const TraceRanges&) = delete;
  virtual ~TraceRanges() = default;
  virtual void begin(const std::string& name) = 0;
  virtual void end() = 0;
};

/// Its lifetime is a range. `ranges` may be null.
class TraceRange {
 public:
  TraceRange(TraceRanges* ranges, const std::string& name) : ranges_(ranges) {
    if (ranges_ != nullptr) ranges_->begin(name);
  }
  ~TraceRange() {
    if (ranges_ != nullptr) ranges_->end();
  }
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;

 private:
  TraceRanges* ranges_;
};

/// By any thread.
class TraceRecorder {
 public:
  /// Spans become ranges, too; `ranges` may be null.
  explicit TraceRecorder(std::shared_ptr<TraceRanges> ranges = nullptr) : ranges_(std::move(ranges)) {
    spans_.reserve(kRoom);
  }
  [[nodiscard]] TraceRanges* ranges() const { return ranges_.get(); }
  void add(const TraceSpan& span) {
    const std::lock_guard lock(mutex_);
    spans_.push_back(span);
  }
  /// All so far; they are forgotten.
  [[nodiscard]] std::vector<TraceSpan> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(spans_, {});
  }

 private:
  static constexpr std::size_t kRoom = 1 << 14;  // of some steps; then it grows
  std::shared_ptr<TraceRanges> ranges_;
  std::mutex mutex_;
  std::vector<TraceSpan> spans_;
};

/// Its lifetime is a span. The recorder may be null.
class TraceScope {
 public:
  TraceScope(TraceRecorder* recorder, const char* name, std::uint64_t step, int track = kPhaseTrack, int item = -1)
      : recorder_(recorder) {
    if (recorder_ == nullptr) return;
    span_ = {.name = name, .track = track, .step = step, .item = item, .start = steady_seconds()};
    if (recorder_->ranges() != nullptr) {
      recorder_->ranges()->begin(item < 0 ? name : std::string(name) + " " + std::to_string(item));
    }
  }
  ~TraceScope() {
    if (recorder_ == nullptr) return;
    span_.end = steady_seconds();
    if (recorder_->ranges() != nullptr) recorder_->ranges()->end();
    recorder_->add(span_);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

  /// Where the seconds inside kernels are added up; null where nobody traces.
  [[nodiscard]] double* kernel_seconds() {
    if (recorder_ == nullptr) return nullptr;
    span_.kernels = 0;
    return &span_.kernels;
  }

 private:
  TraceRecorder* recorder_;
  TraceSpan span_;
};

}  // namespace lockstep
