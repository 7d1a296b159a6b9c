// GpuWorker: a shard on a stream of the rank's GPU. The host only puts work on streams until the last kernel of the
// shard is there; then it hands over the gradients, bucket by bucket, as they arrive in its memory. So a bucket is
// exchanged while the GPU still computes later ones, and another worker's shard runs while this one hands over.
//
//   in       inputs -> the GPU's memory (InputStage)
//   compute  kernels; each finished bucket is an event
//   out      waits for that event; bucket -> the host's memory, again an event
#pragma once

#include <memory>
#include <vector>

#include "backend/gpu/gpu_lane.hpp"
#include "backend/gpu/input_stage.hpp"
#include "exec/shard_runner.hpp"
#include "exec/shard_worker.hpp"

namespace lockstep::exec {

class GpuWorker final : public ShardWorker {
 public:
  /// The lane must outlive the worker.
  GpuWorker(const Graph& graph, const Program& program, KernelSet kernels, backend::GpuLane& lane);
  GpuWorker(const GpuWorker&) = delete;
  GpuWorker& operator=(const GpuWorker&) = delete;
  ~GpuWorker() override;

  /// `call.parameters` are on the GPU, and nothing writes them meanwhile.
  void run(const ShardCall& call) override;
  [[nodiscard]] const float* result(const Location& location) const override;

  /// Bytes on the GPU beside the arena: inputs, gradients.
  [[nodiscard]] static std::size_t input_bytes(const Graph& graph);
  [[nodiscard]] static std::size_t gradient_bytes(const Program& program);

 private:
  struct Result {
    Location location;
    std::size_t bytes = 0;
    std::byte* pinned = nullptr;
  };
  /// Gradients of all slots, once on the GPU and once pinned.
  struct Gradients {
    std::byte *device = nullptr, *pinned = nullptr;
  };

  void want_result(const Location& location, std::size_t bytes);
  void put_inputs(const ShardInputs& inputs);
  void use_layout(const GradientLayout& layout);
  void send_out(std::size_t bucket);
  void hand_over(const GradientLayout& layout, BucketSink& sink);

  const Graph& graph_;
  const Program& program_;
  backend::GpuLane& lane_;
  backend::Gpu& gpu_;
  ShardRunner runner_;
  backend::InputStage stage_;
  std::vector<std::span<const std::byte>> parts_;
  std::vector<const void*> inputs_;
  Gradients gradients_;
  std::vector<SlotMemory> slots_;
  std::vector<std::size_t> bucket_start_;  ///< bytes
  std::vector<std::size_t> bucket_bytes_;
  std::vector<backend::Gpu::Event> computed_, arrived_;  ///< by bucket
  std::vector<Result> results_;
  backend::Gpu::Event all_computed_;
};

}  // namespace lockstep::exec
