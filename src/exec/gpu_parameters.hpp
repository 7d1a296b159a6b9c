// The GPU's copy of the parameters and states, made new whenever the host's have changed.
#pragma once

#include <span>
#include <vector>

#include "backend/gpu/gpu.hpp"
#include "exec/parameters.hpp"

namespace lockstep::exec {

class GpuParameters {
 public:
  /// The Gpu must outlive it.
  GpuParameters(backend::Gpu& gpu, const TensorBlock& parameters, const TensorBlock& states);
  GpuParameters(const GpuParameters&) = delete;
  GpuParameters& operator=(const GpuParameters&) = delete;
  ~GpuParameters();

  /// Copies both, and returns when they are there. Nothing may be reading the copy.
  void update(const TensorBlock& parameters, const TensorBlock& states);

  [[nodiscard]] std::span<const float* const> parameters() const { return parameters_; }
  [[nodiscard]] std::span<const float* const> states() const { return states_; }
  [[nodiscard]] static std::size_t bytes(const TensorBlock& parameters, const TensorBlock& states);

 private:
  backend::Gpu& gpu_;
  backend::Gpu::Stream stream_;
  backend::Gpu::Event copied_;
  std::size_t bytes_;
  std::byte *device_ = nullptr, *pinned_ = nullptr;
  std::vector<const float*> parameters_, states_;
};

}  // namespace lockstep::exec
