// A worker's part of its rank's GPU: a stream for kernels, and working memory. Training and evaluation use the same
// lanes, one after the other, so that their memory is needed once.
#pragma once

#include <memory>
#include <vector>

#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_arena.hpp"

namespace lockstep::device {

struct GpuLane {
  explicit GpuLane(Gpu& device) : gpu(device), compute(gpu.make_kernel_stream()), arena(gpu) {}
  Gpu& gpu;
  Gpu::Stream compute;
  GpuArena arena;
};

class GpuLanes {
 public:
  explicit GpuLanes(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}

  [[nodiscard]] Gpu& gpu() const { return *gpu_; }
  /// Made when first asked for, and kept: not by two threads at once.
  [[nodiscard]] GpuLane& at(std::size_t worker) {
    while (lanes_.size() <= worker) lanes_.push_back(std::make_unique<GpuLane>(*gpu_));
    return *lanes_[worker];
  }

 private:
  std::shared_ptr<Gpu> gpu_;  // before the lanes: it outlives them
  std::vector<std::unique_ptr<GpuLane>> lanes_;
};

}  // namespace lockstep::device
