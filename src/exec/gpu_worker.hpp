// GpuWorker: a shard on a stream of the rank's GPU. Kernels write gradients where the reducer wants them: a buffer has
// an event to wait for before it is written, and one to record after (comm/reduce/all_reduce_gpu.hpp). So siblings are
// added, and buckets leave, while the GPU computes on; the host waits for the shard's results only, and another
// worker's shard runs meanwhile.
#pragma once

#include <memory>
#include <vector>

#include "device/gpu/gpu.hpp"
#include "exec/device.hpp"
#include "exec/gpu_device.hpp"
#include "exec/gpu_shard_io.hpp"
#include "exec/shard_runner.hpp"
#include "exec/worker.hpp"

namespace lockstep::exec {

/// A shard's kernels as graphs, so that the host's part of them is a call for each bucket instead of one for each
/// kernel: small shards are bound by those.
///
/// A graph holds the addresses that its kernels were given. Those of buffers differ from shard to shard, so there is a
/// graph for each set of them that turned up (a handful: comm/reduce/tree_sums.hpp uses memory again); when
/// any other has moved, all graphs are made anew. What is launched for the first time is launched as it is, which lets
/// libraries load what they need.
class GpuGraphs {
 public:
  /// The Gpu outlives it; when it ends, the stream is done.
  GpuGraphs(device::Gpu& gpu, device::Gpu::Stream stream) : gpu_(gpu), stream_(stream) {}

  /// Before a shard's parts: all addresses that its kernels are given, but those of buffers. The stream is done.
  void begin(std::vector<const void*> addresses);

  /// Enqueues a part of the program on the stream, by launch() or as a graph of what launch() enqueues. Errors name the
  /// `step`, and name() where it is a graph.
  template <class Launch, class Name>
  void run(std::size_t part, std::span<const comm::GradientBuffer> buffers, std::uint64_t step, const Launch& launch,
           const Name& name) {
    Recorded& recorded = at(part, buffers);
    if (std::exchange(recorded.seen, true) && recorded.graph == nullptr) {
      recorded.graph = gpu_.capture(stream_, launch);
      recorded.name = name();
    }
    if (recorded.graph == nullptr) return launch();
    gpu_.enter(stream_, step, recorded.name);
    recorded.graph->launch();
  }

 private:
  struct Recorded {
    bool seen = false;
    std::unique_ptr<device::GpuGraph> graph;
    std::string name;
  };
  [[nodiscard]] Recorded& at(std::size_t part, std::span<const comm::GradientBuffer> buffers);

  device::Gpu& gpu_;
  device::Gpu::Stream stream_;
  std::vector<const void*> addresses_;
  std::vector<std::uintptr_t> key_;
  std::map<std::vector<std::uintptr_t>, Recorded> recorded_;  ///< by part and buffers
};

class GpuWorker final : public Worker {
 public:
  /// `graphs`: kernels are launched in graphs. `filler`: makes the inputs; null: they are copied.
  GpuWorker(const ProgramSetup& setup, std::shared_ptr<GpuWorkerStream> stream, KernelSet kernels, bool graphs,
            std::shared_ptr<const InputFiller> filler);
  GpuWorker(const GpuWorker&) = delete;
  GpuWorker& operator=(const GpuWorker&) = delete;
  ~GpuWorker() override = default;

  /// Nothing writes the model meanwhile.
  double run(const ShardCall& call) override;
  [[nodiscard]] const float* result(const Location& location) const override { return results_.at(location); }

 private:
  /// All kernels of the shard, part by part: a part ends where a bucket does.
  void launch_program(const ShardCall& call);
  /// All addresses that a shard's kernels are given, but those of gradients.
  [[nodiscard]] std::vector<const void*> addresses(const ModelView& model, const std::byte* arena) const;

  const Program& program_;
  std::shared_ptr<GpuWorkerStream> stream_;
  device::Gpu& gpu_;
  ShardRunner runner_;
  ShardGradients gradients_;
  std::unique_ptr<GpuGraphs> graphs_;  ///< null: kernels are launched one by one
  GpuInputs inputs_;
  GpuResults results_;  ///< after the others: it waits for what uses them
};

}  // namespace lockstep::exec
