// Spans of some steps of one rank, for a timeline. If tracing is off there is no recorder, and a span costs a null
// check.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/spans.hpp"

namespace lockstep {

/// Seconds of this host's steady clock, in which spans are measured.
[[nodiscard]] inline double steady_seconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// The row of a span in its rank's timeline. Workers have the tracks from 1 on.
inline constexpr int kPhaseTrack = 0;      ///< the main thread's phases
inline constexpr int kReduceTrack = 1000;  ///< summing as the owner of a slice
inline constexpr int kBucketTrack = 1001;  ///< buckets in flight; these may overlap
/// From here on: background threads. Their spans carry the step that they work for; if a step has to wait for them, a
/// span in one of the tracks above shows that.
inline constexpr int kBesideTrack = 1100;
inline constexpr int kCheckpointTrack = kBesideTrack;  ///< the checkpoint's writer
[[nodiscard]] inline constexpr int prefetch_track(int thread) {
  return kCheckpointTrack + 1 + thread;
}
/// From here on: what a GPU did, by its own clock, one track for each of its streams.
inline constexpr int kGpuTrack = 2000;
[[nodiscard]] inline constexpr int worker_track(int worker) {
  return worker + 1;
}

// What a worker that computes a part of a model waits for.
inline constexpr const char* kActivationWait = "activations";         ///< from other parts
inline constexpr const char* kGradientWait = "activation gradients";  ///< the same, in the backward pass
inline constexpr const char* kSendWait = "sends to other parts";      ///< to complete

struct TraceSpan {
  const char* name = "";  ///< a string literal
  int track = kPhaseTrack;
  std::uint64_t step = 0;  ///< from 0
  int item = -1;           ///< the micro-batch of a worker's or prefetcher's span, the bucket of a reducer's; -1: none
  double start = 0, end = 0;
  double kernels = -1;  ///< seconds inside kernels; -1: the span computes nothing
};

/// Is told when spans begin and end, for tools that observe a process from outside. Thread-safe: each range belongs to
/// the thread that begins and ends it, and ranges nest.
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

/// Thread-safe.
class TraceRecorder {
 public:
  /// Spans are also reported as ranges; `ranges` may be null.
  explicit TraceRecorder(std::shared_ptr<TraceRanges> ranges = nullptr) : ranges_(std::move(ranges)) {
    spans_.reserve(kRoom);
  }
  TraceRanges* ranges() const { return ranges_.get(); }
  void add(const TraceSpan& span) {
    const std::lock_guard lock(mutex_);
    spans_.push_back(span);
  }
  /// Removes and returns all spans so far.
  [[nodiscard]] std::vector<TraceSpan> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(spans_, {});
  }

 private:
  static constexpr std::size_t kRoom = 1 << 14;  // enough for some steps; then the vector grows
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

  /// Where seconds inside kernels are added up; null if tracing is off.
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
