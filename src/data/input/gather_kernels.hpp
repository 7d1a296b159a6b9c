// The functors of the kernels that gather a micro-batch's inputs from a data set on the GPU, and the class that
// launches them. Images are moved and normalised with the formulas of the host's pipeline (data/augment.cpp), and so
// have its bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/host_device.hpp"
#include "device/gpu/grid.hpp"
#include "lockstep/augment.hpp"

namespace lockstep::input {

/// What MoveStep::apply() does row by row, for one pixel: turns a position in the moved image into the position in the
/// original one; false: the pixel is black.
LOCKSTEP_HOST_DEVICE inline bool trace_back(const PixelMove& move, std::int64_t& y, std::int64_t& x) {
  const PixelRectangle& hole = move.hole;
  if (y >= hole.top && y < hole.bottom && x >= hole.left && x < hole.right) return false;
  y += move.down;
  x += move.right;
  if (y < 0 || y >= move.height || x < 0 || x >= move.width) return false;
  if (move.flip != 0) x = move.width - 1 - x;
  return true;
}

/// One pixel of a micro-batch's images, with all its channels: applies the sample's moves backwards, from the last to
/// the first.
struct GatherImagesFunctor {
  const std::uint8_t* images;     ///< [samples, height, width, channels]
  const std::int64_t* ids;        ///< [b]
  const PixelMove* moves;         ///< [b, steps]
  const float *factors, *shifts;  ///< [channels]
  float* out;                     ///< [b, out_height, out_width, channels]
  std::int64_t height, width, channels, out_height, out_width, steps;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t pixel) const {
    const std::int64_t sample = pixel / (out_height * out_width);
    std::int64_t y = pixel / out_width % out_height, x = pixel % out_width;
    bool there = true;
    for (std::int64_t step = steps - 1; step >= 0 && there; --step) {
      there = trace_back(moves[sample * steps + step], y, x);
    }
    const std::uint8_t* from = there ? images + ((ids[sample] * height + y) * width + x) * channels : nullptr;
    for (std::int64_t c = 0; c < channels; ++c) {
      const float value = there ? static_cast<float>(from[c]) : 0.0F;
      out[pixel * channels + c] = value * factors[c] + shifts[c];
    }
  }
};

/// One byte of any other feature, unchanged.
struct GatherBytesFunctor {
  const std::byte* samples;  ///< [samples, bytes]
  const std::int64_t* ids;   ///< [b]
  std::byte* out;            ///< [b, bytes]
  std::int64_t bytes;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { out[i] = samples[ids[i / bytes] * bytes + i % bytes]; }
};

/// Launches them on a stream: on GPUs through the CUDA module, in tests over the whole grid on the CPU.
class GatherKernels {
 public:
  GatherKernels() = default;
  GatherKernels(const GatherKernels&) = delete;
  GatherKernels& operator=(const GatherKernels&) = delete;
  virtual ~GatherKernels() = default;

  /// functor(i) for i = 0 ... n - 1
  virtual void launch(GpuStream* stream, std::int64_t n, const GatherImagesFunctor& functor) const = 0;
  virtual void launch(GpuStream* stream, std::int64_t n, const GatherBytesFunctor& functor) const = 0;
};

/// Launched as grids of device/gpu/grid.hpp.
template <class Grid>
class GridGatherKernels final : public GatherKernels {
 public:
  void launch(GpuStream* stream, std::int64_t n, const GatherImagesFunctor& functor) const override {
    Grid::each(stream, n, functor);
  }
  void launch(GpuStream* stream, std::int64_t n, const GatherBytesFunctor& functor) const override {
    Grid::each(stream, n, functor);
  }
};

/// The module's function that makes them: GatherKernels*().
inline constexpr const char* kModuleMakeGatherKernels = "lockstep_cuda_make_gather_kernels";

}  // namespace lockstep::input
