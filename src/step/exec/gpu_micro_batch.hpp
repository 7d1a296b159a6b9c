// GpuMicroBatch: a micro-batch on a stream of the rank's GPU. Kernels write gradients directly into the reducer's
// buffers: a buffer has an event to wait for before it is written, and one to record afterwards
// (comm/reduce/all_reduce_gpu.hpp). So sibling micro-batches are added, and buckets sent, while the GPU goes on
// computing; the host waits only for results, and for what it sends to other parts, while another worker's micro-batch
// runs. Tensors from other parts are received in pinned memory and copied to the GPU; tensors for other parts are first
// copied to pinned memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_memory.hpp"
#include "step/exec/device.hpp"
#include "step/exec/gpu_device.hpp"
#include "step/exec/gpu_gathers.hpp"
#include "step/exec/gpu_micro_batch_io.hpp"
#include "step/exec/micro_batch.hpp"
#include "step/exec/micro_batch_runner.hpp"

namespace lockstep::exec {

/// A micro-batch's kernels as CUDA graphs, so that the host makes one call per segment instead of one per kernel:
/// kernel launches are the bottleneck of small micro-batches.
///
/// A graph contains the addresses that its kernels were given. Gradient buffers differ from micro-batch to micro-batch,
/// so there is one graph per combination of buffers that has occurred (a handful: comm/reduce/tree_sums.hpp reuses
/// memory); when any other address changes, all graphs are captured again. On first use, kernels are launched without a
/// graph, so that libraries can load what they need.
class GpuGraphs {
 public:
  /// The Gpu must outlive it; none of its graphs may be running when it is destroyed.
  GpuGraphs(device::Gpu& gpu, device::Gpu::Stream stream) : gpu_(gpu), stream_(stream) {}

  /// Call before a micro-batch's segments, with all addresses that its kernels are given, except those of buffers. None
  /// of its graphs may be running.
  void begin(std::vector<const void*> addresses);

  /// Enqueues a segment of the program on the stream, by launch() or as a graph captured from launch(). Errors name the
  /// `step`, and in a graph also name().
  template <class Launch, class Name>
  void run(std::size_t segment, std::span<const comm::GradientBuffer> buffers, std::uint64_t step, const Launch& launch,
           const Name& name) {
    Recorded& recorded = at(segment, buffers);
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
  [[nodiscard]] Recorded& at(std::size_t segment, std::span<const comm::GradientBuffer> buffers);

  device::Gpu& gpu_;
  device::Gpu::Stream stream_;
  std::vector<const void*> addresses_;
  std::vector<std::uintptr_t> key_;
  std::map<std::vector<std::uintptr_t>, Recorded> recorded_;  ///< by segment and buffers
};

class GpuMicroBatch final : public MicroBatch {
 public:
  /// `graphs`: launch kernels in graphs. `filler`: prepares the inputs; null: they are copied.
  GpuMicroBatch(const ProgramSetup& setup, std::shared_ptr<GpuWorkerStream> stream, MicroBatchRunner& runner,
                bool graphs, std::shared_ptr<const InputFiller> filler);

  /// Bytes on the GPU of a micro-batch of a part, besides its inputs.
  [[nodiscard]] static std::size_t bytes(const ProgramSetup& setup);

  [[nodiscard]] std::byte* message(FromParts what, std::size_t entry) override;
  void received(FromParts what, std::size_t entry) override;
  void begin(const MicroBatchCall& call) override;
  void begin_pass(const MicroBatchCall& call, int wave) override;
  void bind() override;
  MicroBatchOperands operands(const MicroBatchCall& call) const override;
  /// A segment ends where a bucket does, and where gathered parameters are read first or last.
  std::size_t end_of_segment(std::size_t first, const MicroBatchGradients& gradients) const override {
    return std::min(gradients.end_of_segment(first), parameters_.end_of_segment(first));
  }
  void before(std::size_t first) override { parameters_.before(first, stream_->stream); }
  void after(std::size_t last) override { parameters_.after(last, stream_->stream); }
  void opened(const comm::GradientBuffer& buffer) override { gpu_.wait(stream_->stream, buffer.free); }
  void closing(const comm::GradientBuffer& buffer) override { gpu_.record(buffer.written, stream_->stream); }
  void run(std::size_t first, std::size_t end, const MicroBatchOperands& operands,
           std::span<const comm::GradientBuffer> buffers) override;
  double waited() const override { return parameters_.seconds(); }
  [[nodiscard]] const void* made(const Location& location, std::size_t bytes, const MicroBatchCall& call) override;
  void finish() override;
  void abandon() noexcept override;
  const float* result(const Location& location) const override { return results_.at(location); }

 private:
  /// Tensors received from other parts.
  struct Arriving {
    Arriving(device::Gpu& gpu, const std::vector<PartLinks::Link>& links);
    std::vector<std::size_t> bytes;
    std::vector<device::PinnedBlock> pinned;
    std::vector<device::GpuBlock> memory;
    std::vector<const void*> at;  ///< their addresses on the GPU
  };
  /// A tensor to be sent to other parts.
  struct Leaving {
    Location location;
    std::size_t bytes = 0;
    device::PinnedBlock pinned;
  };
  [[nodiscard]] Arriving& arriving(FromParts what) { return what == FromParts::value ? values_ : gradients_; }
  void add_leaving(const Location& location, std::size_t bytes);
  std::vector<Leaving>::const_iterator find_leaving(const Location& location, std::size_t bytes) const;
  /// Of a part, its own; all programs of whole models on a stream share one.
  [[nodiscard]] std::byte* arena();
  /// All addresses that kernels are given, except those of gradients. Gathered parameters have theirs in slots, each
  /// segment always the same.
  [[nodiscard]] std::vector<const void*> addresses(const ModelView& model);

  std::shared_ptr<GpuWorkerStream> stream_;
  device::Gpu& gpu_;
  MicroBatchRunner& runner_;
  std::size_t arena_bytes_;
  bool has_loss_;           ///< a part may leave it to another
  device::GpuBlock arena_;  ///< of a part
  Arriving values_, gradients_;
  std::vector<Leaving> leaving_;
  device::Gpu::Event copied_;  ///< after the copies to the host
  TraceRanges* ranges_ = nullptr;
  GpuGathers* gathers_ = nullptr;  ///< of the micro-batch's model; null: all parameters are in memory
  GatherReader parameters_;
  std::unique_ptr<GpuGraphs> graphs_;  ///< null: kernels are launched one by one
  GpuInputs inputs_;
  GpuResults results_;  ///< last, because its destructor waits for what uses the others
};

}  // namespace lockstep::exec
