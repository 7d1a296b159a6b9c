// GpuWorker: computes a micro-batch on a stream of the rank's GPU. Kernels write gradients directly into the reducer's
// buffers: a buffer has an event to wait for before it is written, and one to record afterwards
// (comm/reduce/all_reduce_gpu.hpp). So sibling micro-batches are added, and buckets sent, while the GPU goes on
// computing; the host waits only for the micro-batch's results, while another worker's micro-batch runs.
#pragma once

#include <memory>
#include <vector>

#include "device/gpu/gpu.hpp"
#include "exec/device.hpp"
#include "exec/gpu_device.hpp"
#include "exec/gpu_gathers.hpp"
#include "exec/gpu_micro_batch_io.hpp"
#include "exec/micro_batch_runner.hpp"
#include "exec/worker.hpp"

namespace lockstep::exec {

/// A micro-batch's kernels as CUDA graphs, so that the host makes one call per bucket instead of one per kernel: kernel
/// launches are the bottleneck of small micro-batches.
///
/// A graph contains the addresses that its kernels were given. Gradient buffers differ from micro-batch to micro-batch,
/// so there is one graph per combination of buffers that has occurred (a handful: comm/reduce/tree_sums.hpp reuses
/// memory); when any other address changes, all graphs are captured again. On first use, kernels are launched without a
/// graph, so that libraries can load what they need.
class GpuGraphs {
 public:
  /// The Gpu must outlive it; the stream must be idle when it is destroyed.
  GpuGraphs(device::Gpu& gpu, device::Gpu::Stream stream) : gpu_(gpu), stream_(stream) {}

  /// Call before a micro-batch's parts, with all addresses that its kernels are given, except those of buffers. The
  /// stream must be idle.
  void begin(std::vector<const void*> addresses);

  /// Enqueues a part of the program on the stream, by launch() or as a graph captured from launch(). Errors name the
  /// `step`, and in a graph also name().
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
  /// `graphs`: launch kernels in graphs. `filler`: prepares the inputs; null: they are copied.
  GpuWorker(const ProgramSetup& setup, std::shared_ptr<GpuWorkerStream> stream, KernelSet kernels, bool graphs,
            std::shared_ptr<const InputFiller> filler);
  GpuWorker(const GpuWorker&) = delete;
  GpuWorker& operator=(const GpuWorker&) = delete;
  ~GpuWorker() override = default;

  /// The model must not change meanwhile.
  double run(const MicroBatchCall& call) override;
  [[nodiscard]] const float* result(const Location& location) const override { return results_.at(location); }

 private:
  /// Launches all kernels of the micro-batch, part by part: a part ends where a bucket does, and where gathered
  /// parameters are read first or last.
  void launch_program(const MicroBatchCall& call);
  /// All addresses that a micro-batch's kernels are given, except those of gradients. Gathered parameters have theirs
  /// in slots, each part of the program always the same.
  [[nodiscard]] std::vector<const void*> addresses(const ModelView& model, const std::byte* arena) const;

  const Program& program_;
  std::shared_ptr<GpuWorkerStream> stream_;
  device::Gpu& gpu_;
  MicroBatchRunner runner_;
  MicroBatchGradients gradients_;
  GatherReader parameters_;
  std::unique_ptr<GpuGraphs> graphs_;  ///< null: kernels are launched one by one
  GpuInputs inputs_;
  GpuResults results_;  ///< last, because its destructor waits for what uses the others
};

}  // namespace lockstep::exec
