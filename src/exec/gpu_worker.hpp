// GpuWorker: a shard on a stream of the rank's GPU. Gradients are computed where they are reduced, in the buffers' own
// memory on the GPU: a buffer is an event to wait for before it is written, and one to record after
// (comm/reduce/all_reduce_gpu.hpp). So siblings are added, and buckets leave, while the GPU computes on; the host waits
// for the shard's results only, and another worker's shard runs meanwhile.
#pragma once

#include <memory>
#include <vector>

#include "device/gpu/gpu_block.hpp"
#include "device/gpu/gpu_lane.hpp"
#include "device/gpu/input_stage.hpp"
#include "exec/bucket_walk.hpp"
#include "exec/gpu_graphs.hpp"
#include "exec/shard_runner.hpp"
#include "exec/shard_worker.hpp"

namespace lockstep::exec {

struct GpuWorkerOptions {
  bool graphs = true;                              ///< kernels are launched in graphs
  std::shared_ptr<const InputFiller> filler = {};  ///< makes the inputs; null: they are copied
};

class GpuWorker final : public ShardWorker {
 public:
  /// The lane must outlive the worker.
  GpuWorker(const Graph& graph, const Program& program, KernelSet kernels, device::GpuLane& lane,
            const GpuWorkerOptions& options);
  GpuWorker(const GpuWorker&) = delete;
  GpuWorker& operator=(const GpuWorker&) = delete;
  ~GpuWorker() override;

  /// `call.parameters` are on the GPU, and nothing writes them meanwhile.
  void run(const ShardCall& call) override;
  [[nodiscard]] const float* result(const Location& location) const override;

  /// Bytes on the GPU beside the arena.
  [[nodiscard]] static std::size_t input_bytes(const Graph& graph);

 private:
  struct Result {
    Location location;
    std::size_t bytes = 0;
    std::byte* pinned = nullptr;
  };
  void want_result(const Location& location, std::size_t bytes);
  /// Sets inputs_, step_ and loss_scale_.
  void launch_inputs(const ShardCall& call);
  /// All that a shard's kernels are given, but buffers.
  [[nodiscard]] std::vector<const void*> addresses(const ShardCall& call, const std::byte* arena) const;
  /// All kernels of the shard, part by part: a part ends where a bucket does.
  void launch_program(const ShardCall& call);

  const Program& program_;
  device::GpuLane& lane_;
  device::Gpu& gpu_;
  ShardRunner runner_;
  std::shared_ptr<const InputFiller> filler_;
  std::vector<std::size_t> part_bytes_;  ///< of what comes from the host
  device::InputStage stage_;
  GpuGraphs graphs_;
  bool with_graphs_;
  std::vector<std::span<const std::byte>> parts_;
  std::vector<const std::byte*> staged_;
  device::GpuBlock filled_;  ///< what the filler makes
  std::vector<std::byte*> filled_places_;
  std::vector<const void*> inputs_;
  const StepContext* step_ = nullptr;  ///< on the GPU
  const float* loss_scale_ = nullptr;  ///< on the GPU
  BucketMemory buckets_;
  std::vector<Result> results_;
  device::Gpu::Event all_computed_;
};

}  // namespace lockstep::exec
