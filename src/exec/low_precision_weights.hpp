// LowPrecisionWeights: of a model's parameters on a GPU, those that enter products of matrices in a low-precision type,
// rounded to it. They are made when parameters come from the host, and written by the update together with the
// parameters themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_memory.hpp"
#include "exec/parameters.hpp"

namespace lockstep::exec {

class LowPrecisionWeights {
 public:
  /// `types`: for each parameter; f32: it has no copy. The Gpu outlives it.
  LowPrecisionWeights(device::Gpu& gpu, const TensorBlock& parameters, const std::vector<DType>& types);

  /// Enqueues it on the stream; nothing, where the parameter has no copy.
  void make(std::size_t parameter, device::Gpu::Stream stream, const float* from, std::int64_t elements) const;

  [[nodiscard]] DType type(std::size_t parameter) const { return types_.at(parameter); }
  /// Null: it has none.
  [[nodiscard]] std::byte* at(std::size_t parameter) const {
    return type(parameter) == DType::f32 ? nullptr : device_.get() + starts_.at(parameter);
  }
  [[nodiscard]] static std::size_t bytes(const TensorBlock& parameters, const std::vector<DType>& types);

 private:
  device::Gpu& gpu_;
  std::vector<DType> types_;
  std::vector<std::size_t> starts_;  ///< bytes
  device::GpuBlock device_;
};

}  // namespace lockstep::exec
