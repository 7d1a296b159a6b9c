// A micro-batch's data between the host and its GPU: inputs on the way there, results on the way back.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "device/gpu/gpu_memory.hpp"
#include "device/gpu/input_stage.hpp"
#include "step/exec/device.hpp"
#include "step/exec/gpu_device.hpp"
#include "step/exec/micro_batch_gradients.hpp"
#include "step/exec/micro_batch_runner.hpp"

namespace lockstep::exec {

/// A micro-batch's tensors, its step's context and its loss scale.
class GpuInputs {
 public:
  /// `filler`: prepares the tensors on the GPU; null: they are copied. Graph and stream must outlive it.
  GpuInputs(const Graph& graph, GpuWorkerStream& stream, std::shared_ptr<const InputFiller> filler);
  GpuInputs(const GpuInputs&) = delete;
  GpuInputs& operator=(const GpuInputs&) = delete;
  ~GpuInputs() = default;

  /// Bytes on the GPU, without a filler.
  [[nodiscard]] static std::size_t bytes(const Graph& graph);

  /// Whatever is launched on the worker's stream from here on may read them.
  void put(const MicroBatchCall& call);
  /// Call when everything that reads them has been launched.
  void release() { stage_.release(); }

  // Addresses on the GPU, after put().
  std::span<const void* const> tensors() const { return tensors_; }
  const StepContext* context() const { return context_; }
  const float* loss_scale() const { return loss_scale_; }

 private:
  GpuWorkerStream& stream_;
  std::shared_ptr<const InputFiller> filler_;
  std::vector<std::size_t> part_bytes_;  ///< of what the host sends
  device::InputStage stage_;
  std::vector<std::span<const std::byte>> parts_;
  std::vector<const std::byte*> staged_;
  device::GpuBlock filled_;  ///< what the filler writes
  std::vector<std::byte*> filled_tensors_;
  std::vector<const void*> tensors_;
  const StepContext* context_ = nullptr;
  const float* loss_scale_ = nullptr;
};

/// What the host needs from a micro-batch: loss and metrics by sample, or the prediction.
class GpuResults {
 public:
  /// The stream must outlive it.
  GpuResults(const ProgramSetup& setup, GpuWorkerStream& stream);
  GpuResults(const GpuResults&) = delete;
  GpuResults& operator=(const GpuResults&) = delete;
  ~GpuResults();

  /// Returns when everything launched on the worker's stream is done and the results are on the host.
  void take(const MicroBatchRunner& runner);
  /// Null if the program has none.
  const float* at(const Location& location) const;

 private:
  struct Result {
    Location location;
    std::size_t bytes = 0;
    device::PinnedBlock pinned;
  };
  void want(const Location& location, std::size_t bytes);

  GpuWorkerStream& stream_;
  std::vector<Result> results_;
  device::Gpu::Event done_;
};

}  // namespace lockstep::exec
