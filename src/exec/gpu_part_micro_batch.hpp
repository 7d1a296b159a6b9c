// GpuPartMicroBatch: a micro-batch of a part on a GPU. Tensors from other parts are received in pinned memory and
// copied to the GPU; tensors for other parts are first copied to pinned memory, and the host waits for the copy.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "device/gpu/gpu_memory.hpp"
#include "exec/device.hpp"
#include "exec/gpu_device.hpp"
#include "exec/gpu_gathers.hpp"
#include "exec/gpu_micro_batch_io.hpp"
#include "exec/micro_batch_runner.hpp"
#include "exec/part_micro_batch.hpp"

namespace lockstep::exec {

class GpuPartMicroBatch final : public PartMicroBatch {
 public:
  GpuPartMicroBatch(const ProgramSetup& setup, std::shared_ptr<GpuWorkerStream> stream, MicroBatchRunner& runner);

  /// Bytes on the GPU, besides its inputs.
  [[nodiscard]] static std::size_t bytes(const ProgramSetup& setup);

  [[nodiscard]] std::byte* message(FromParts what, std::size_t entry) override;
  void begin(const MicroBatchCall& call) override;
  void received(FromParts what, std::size_t entry) override;
  void begin_wave(const MicroBatchCall& call, int wave) override;
  void before(std::size_t instruction) override { parameters_.before(instruction, stream_->stream); }
  void after(std::size_t instruction) override { parameters_.after(instruction, stream_->stream); }
  [[nodiscard]] double gather_seconds() const override { return parameters_.seconds(); }
  void abandon() noexcept override;
  void bind() override;
  [[nodiscard]] MicroBatchOperands operands(const MicroBatchCall& call) const override;
  void opened(const comm::GradientBuffer& buffer) override { gpu_.wait(stream_->stream, buffer.free); }
  void closing(const comm::GradientBuffer& buffer) override { gpu_.record(buffer.written, stream_->stream); }
  [[nodiscard]] const void* made(const Location& location, std::size_t bytes, const MicroBatchCall& call) override;
  void finish() override;
  [[nodiscard]] const float* result(const Location& location) const override { return results_.at(location); }

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
  [[nodiscard]] std::vector<Leaving>::const_iterator find_leaving(const Location& location, std::size_t bytes) const;

  std::shared_ptr<GpuWorkerStream> stream_;
  device::Gpu& gpu_;
  MicroBatchRunner& runner_;
  device::GpuBlock arena_;
  Arriving values_, gradients_;
  std::vector<Leaving> leaving_;
  device::Gpu::Event copied_;  ///< after the copies to the host
  TraceRanges* ranges_ = nullptr;
  GpuGathers* gathers_ = nullptr;  ///< of the micro-batch's model; null: all parameters are in memory
  GatherReader parameters_;
  GpuInputs inputs_;
  GpuResults results_;  ///< last, because its destructor waits for what uses the others
};

}  // namespace lockstep::exec
