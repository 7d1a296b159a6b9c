// GpuWorker: a shard on a stream of the rank's GPU. Kernels write gradients where the reducer wants them: a buffer has
// an event to wait for before it is written, and one to record after (comm/reduce/all_reduce_gpu.hpp). So siblings are
// added, and buckets leave, while the GPU computes on; the host waits for the shard's results only, and another
// worker's shard runs meanwhile.
#pragma once

#include <memory>
#include <vector>

#include "device/gpu/gpu_memory.hpp"
#include "device/gpu/input_stage.hpp"
#include "exec/gpu_device.hpp"
#include "exec/gpu_graphs.hpp"
#include "exec/input_filler.hpp"
#include "exec/shard_runner.hpp"
#include "exec/worker.hpp"

namespace lockstep::exec {

class GpuWorker final : public Worker {
 public:
  /// `graphs`: kernels are launched in graphs. `filler`: makes the inputs; null: they are copied.
  GpuWorker(const ProgramSetup& setup, std::shared_ptr<GpuWorkerStream> stream, KernelSet kernels, bool graphs,
            std::shared_ptr<const InputFiller> filler);
  GpuWorker(const GpuWorker&) = delete;
  GpuWorker& operator=(const GpuWorker&) = delete;
  ~GpuWorker() override;

  /// Nothing writes the model meanwhile.
  double run(const ShardCall& call) override;
  [[nodiscard]] const float* result(const Location& location) const override;

  /// Bytes on the GPU, beside activations.
  [[nodiscard]] static std::size_t input_bytes(const Graph& graph);

 private:
  struct Result {
    Location location;
    std::size_t bytes = 0;
    std::byte* pinned = nullptr;
  };
  void want_result(const Location& location, std::size_t bytes);
  /// Sets inputs_, context_ and loss_scale_.
  void launch_inputs(const ShardCall& call);
  /// All kernels of the shard, part by part: a part ends where a bucket does.
  void launch_program(const ShardCall& call);
  /// All addresses that a shard's kernels are given, but those of gradients.
  [[nodiscard]] std::vector<const void*> addresses(const ModelView& model, const std::byte* arena) const;

  const Program& program_;
  std::shared_ptr<GpuWorkerStream> stream_;
  device::Gpu& gpu_;
  ShardRunner runner_;
  ShardGradients gradients_;
  std::shared_ptr<const InputFiller> filler_;
  std::vector<std::size_t> part_bytes_;  ///< of what comes from the host
  device::InputStage stage_;
  std::unique_ptr<GpuGraphs> graphs_;  ///< null: kernels are launched one by one
  std::vector<std::span<const std::byte>> parts_;
  std::vector<const std::byte*> staged_;
  device::GpuBlock filled_;  ///< what the filler makes
  std::vector<std::byte*> filled_inputs_;
  std::vector<const void*> inputs_;
  const StepContext* context_ = nullptr;  ///< on the GPU
  const float* loss_scale_ = nullptr;     ///< on the GPU
  std::vector<Result> results_;
  device::Gpu::Event all_computed_;
};

}  // namespace lockstep::exec
