// CudaGpu: the implementation of Gpu (device/gpu/gpu.hpp) with CUDA.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "device/cuda/cudnn_plans.hpp"
#include "device/cuda/gpu_stream.hpp"
#include "device/cuda/handles.hpp"
#include "device/gpu/gpu.hpp"

namespace lockstep::device {

class CudaGpu final : public Gpu {
 public:
  /// `ordinal`: the driver's number (device/gpu/driver.hpp). It becomes the calling thread's current GPU.
  CudaGpu(int ordinal, GpuPlace place);

  void make_current() override;
  [[nodiscard]] Stream make_stream() override;
  [[nodiscard]] Stream make_kernel_stream() override;
  [[nodiscard]] Event make_event() override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  void wait(Event event) override;
  [[nodiscard]] bool done(Event event) override;
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override;
  void free(std::byte* memory) override;
  [[nodiscard]] std::byte* allocate_pinned(std::size_t bytes) override;
  void free_pinned(std::byte* memory) override;
  void fill(std::byte* pinned, const std::byte* from, std::size_t bytes) override;
  void copy_in(Stream stream, std::byte* device, const std::byte* pinned, std::size_t bytes) override;
  void copy_out(Stream stream, std::byte* pinned, const std::byte* device, std::size_t bytes) override;
  void copy(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) override;
  void clear(Stream stream, std::byte* device, std::size_t bytes) override;
  [[nodiscard]] GpuStream* kernel_stream(Stream stream) override {
    return kernel_streams_.at(static_cast<std::size_t>(stream)).get();
  }
  void enter(Stream stream, std::uint64_t step, const std::string& op) override;
  using Gpu::add;
  void add(Stream stream, DType dtype, const void* left, const void* right, void* out, std::int64_t n) override;
  void cast(Stream stream, Cast cast, DType type, const void* from, void* to, std::int64_t n) override;
  void scale(Stream stream, float* values, const float* factors, std::int64_t n, std::int64_t columns) override;
  [[nodiscard]] std::unique_ptr<GpuGraph> capture(Stream stream, const std::function<void()>& launch) override;
  [[nodiscard]] std::size_t free_memory() override;

 private:
  cudaStream_t at(Stream stream) const { return streams_.at(static_cast<std::size_t>(stream)).get(); }
  /// An Event is CUDA's handle itself, so threads need no table.
  [[nodiscard]] static cudaEvent_t at(Event event) {
    return reinterpret_cast<cudaEvent_t>(event);  // NOLINT(performance-no-int-to-ptr)
  }

  int ordinal_;
  GpuPlace place_;  ///< without step and op; each stream starts with it
  GpuTrail trail_;
  std::vector<CudaStream> streams_;
  std::vector<std::unique_ptr<GpuStream>> kernel_streams_;  ///< by stream; null for streams that only copy
  CudnnPlans cudnn_plans_;                                  ///< shared by all streams
  std::mutex mutex_;                                        ///< guards what follows
  std::vector<CudaEvent> events_;
  std::unordered_map<std::byte*, DeviceMemory> device_;
  std::unordered_map<std::byte*, PinnedMemory> pinned_;
};

}  // namespace lockstep::device
