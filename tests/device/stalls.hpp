// Streams whose work no longer ends, and what waits for them: for fakes, which do work at once.
#pragma once

#include <mutex>
#include <set>

#include "device/gpu/gpu.hpp"

namespace lockstep::device {

class Stalls {
 public:
  /// Work enqueued on the stream from now on does not end, until resume().
  void stall(Gpu::Stream stream) {
    const std::lock_guard lock(mutex_);
    streams_.insert(stream);
  }
  /// Ends everything.
  void resume() {
    const std::lock_guard lock(mutex_);
    streams_.clear();
    events_.clear();
  }
  void record(Gpu::Event event, Gpu::Stream stream) {
    const std::lock_guard lock(mutex_);
    if (streams_.contains(stream)) {
      events_.insert(event);
    } else {
      events_.erase(event);
    }
  }
  void wait(Gpu::Stream stream, Gpu::Event event) {
    const std::lock_guard lock(mutex_);
    if (events_.contains(event)) streams_.insert(stream);
  }
  [[nodiscard]] bool done(Gpu::Event event) const {
    const std::lock_guard lock(mutex_);
    return !events_.contains(event);
  }

 private:
  mutable std::mutex mutex_;
  std::set<Gpu::Stream> streams_;
  std::set<Gpu::Event> events_;  ///< not done
};

}  // namespace lockstep::device
