// HostProfiler: a GpuProfiler for machines without a GPU. What ops report about themselves is recorded as the GPU's
// activity, by a clock with a different start that runs a tenth faster than the host's, so that errors in converting it
// show in a timeline.
//   STAND_IN_PROFILER  missing: nothing can be recorded
#pragma once

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/gpu/gpu_profiler.hpp"

namespace lockstep::device {

class HostProfiler final : public GpuProfiler {
 public:
  std::string start() override {
    if (std::getenv("STAND_IN_PROFILER") != nullptr) return "libcupti.so.13: cannot be opened";
    const std::lock_guard lock(mutex_);
    recording_.first = clocks();
    return "";
  }
  GpuRecording stop() override {
    const std::lock_guard lock(mutex_);
    recording_.last = clocks();
    return std::exchange(recording_, {});
  }
  void begin(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    open_[std::this_thread::get_id()].push_back({name, 0, clocks().gpu, 0, -1});
  }
  void end() override {
    const std::lock_guard lock(mutex_);
    auto& open = open_[std::this_thread::get_id()];
    if (open.empty()) std::abort();  // ended without a beginning
    GpuActivity done = open.back();
    open.pop_back();
    done.end = clocks().gpu;
    const bool op = done.name.find('\'') != std::string::npos;  // "relu 'first'"
    const auto next = static_cast<std::uint32_t>(kFirstStream + streams_.size());
    done.stream = streams_.emplace(std::this_thread::get_id(), next).first->second;
    if (op && recording_.first.gpu > 0) recording_.activities.push_back(done);
  }

 private:
  static constexpr std::size_t kFirstStream = 13;
  static ClockPair clocks() {
    const double host = steady_seconds();
    return {host, static_cast<std::uint64_t>(1e18 + host * 1.1e9)};
  }

  std::mutex mutex_;
  std::map<std::thread::id, std::vector<GpuActivity>> open_;
  std::map<std::thread::id, std::uint32_t> streams_;
  GpuRecording recording_;
};

}  // namespace lockstep::device
