// LibraryTrial: a plan of a library is tried before it is used, on small integers, against our own kernel. Sums of
// small integers are exact in any order, in fp32 and after any conversion that a plan may make of its factors, so the
// results must have equal bits. cuDNN 9.19 has plans for an H200 that fail: some weight gradients in fp32 of two-byte
// factors whose pixels are not multiples of 16 bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/cuda/cuda_grid.cuh"
#include "device/cuda/handles.hpp"
#include "device/gpu/elements.hpp"

namespace lockstep::device {

/// to[i] = one of -1, 0, 1 and 2
template <class T>
struct SmallIntegersFunctor {
  T* to;
  std::uint64_t seed;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::uint64_t mixed = (static_cast<std::uint64_t>(i) + seed) * 0x9E3779B97F4A7C15U;
    to[i] = static_cast<float>(static_cast<int>(mixed >> 62U) - 1);
  }
};

/// differs[i]: whether block i of two results has different bits.
struct DifferenceFunctor {
  static constexpr std::int64_t kBlock = 256;
  const std::uint16_t *left, *right;
  std::int64_t size;
  std::uint8_t* differs;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t end = (i + 1) * kBlock < size ? (i + 1) * kBlock : size;
    bool found = false;
    for (std::int64_t k = i * kBlock; k < end; ++k) found = found || left[k] != right[k];
    differs[i] = found ? 1 : 0;
  }
};

class LibraryTrial {
 public:
  explicit LibraryTrial(GpuStream* stream) : stream_(stream) {}
  LibraryTrial(const LibraryTrial&) = delete;
  LibraryTrial& operator=(const LibraryTrial&) = delete;
  ~LibraryTrial() { report_gpu(cudaStreamSynchronize(stream_->cuda()), "cudaStreamSynchronize"); }

  /// Memory until the trial ends.
  void* memory(std::size_t bytes) {
    memory_.push_back(make_device_memory(bytes == 0 ? 1 : bytes, stream_->place()));
    return memory_.back().get();
  }
  /// An operand; each has other numbers.
  void* integers(DType type, std::int64_t count) {
    void* const to = memory(static_cast<std::size_t>(count) * size_of(type));
    with_element(type, [&]<class T>(T /*element*/) {
      CudaGrid::each(stream_, count, SmallIntegersFunctor<T>{static_cast<T*>(to), memory_.size() << 40U});
    });
    return to;
  }
  /// Whether library(result) and own(result) write the same bits. Waits for both.
  template <class Library, class Own>
  bool agree(DType type, std::int64_t count, const Library& library, const Own& own) {
    const std::size_t bytes = static_cast<std::size_t>(count) * size_of(type);
    void* const by_library = memory(bytes);
    void* const by_own = memory(bytes);
    clear(by_library, bytes);  // what a plan does not write is wrong, too
    library(by_library);
    own(by_own);
    const auto size = static_cast<std::int64_t>(bytes / sizeof(std::uint16_t));
    const std::int64_t blocks = (size + DifferenceFunctor::kBlock - 1) / DifferenceFunctor::kBlock;
    const auto flags = static_cast<std::size_t>(blocks);
    auto* const differs = static_cast<std::uint8_t*>(memory(flags));
    CudaGrid::each(stream_, blocks,
                   DifferenceFunctor{static_cast<const std::uint16_t*>(by_library),
                                     static_cast<const std::uint16_t*>(by_own), size, differs});
    const PinnedMemory found = make_pinned_memory(flags, stream_->place());
    LOCKSTEP_GPU(stream_->place(),
                 cudaMemcpyAsync(found.get(), differs, flags, cudaMemcpyDeviceToHost, stream_->cuda()));
    LOCKSTEP_GPU(stream_->place(), cudaStreamSynchronize(stream_->cuda()));
    const auto* const first = static_cast<const std::uint8_t*>(found.get());
    return std::find(first, first + flags, std::uint8_t{1}) == first + flags;
  }

 private:
  void clear(void* to, std::size_t bytes) const {
    LOCKSTEP_GPU(stream_->place(), cudaMemsetAsync(to, 0xff, bytes, stream_->cuda()));
  }

  GpuStream* stream_;
  std::vector<DeviceMemory> memory_;
};

}  // namespace lockstep::device
