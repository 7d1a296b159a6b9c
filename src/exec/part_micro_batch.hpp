// PartMicroBatch: the memory of a micro-batch of one part of a model, from the first message that it receives until the
// last one that it sends has left. Messages are received in host memory and sent from there: for a CPU
// (CpuPartMicroBatch) this is the memory in which kernels compute; a GPU's (GpuPartMicroBatch) is copied to the GPU and
// back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/device.hpp"
#include "exec/micro_batch_runner.hpp"
#include "exec/worker.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::exec {

/// What other parts send: the values of PartBoundary::received, the gradients of its arrivals.
enum class FromParts : std::uint8_t { value, gradient };

class PartMicroBatch {
 public:
  PartMicroBatch() = default;
  PartMicroBatch(const PartMicroBatch&) = delete;
  PartMicroBatch& operator=(const PartMicroBatch&) = delete;
  virtual ~PartMicroBatch() = default;

  /// Where entry `entry` of PartLinks::received, or arrivals, is received, in host memory.
  [[nodiscard]] virtual std::byte* message(FromParts what, std::size_t entry) = 0;
  /// Call before forward, when the micro-batch's inputs are on the host; the call must live until the micro-batch's
  /// last instruction.
  virtual void begin(const MicroBatchCall& call) = 0;
  /// The entry has been received: instructions that run from here on may read it.
  virtual void received(FromParts /*what*/, std::size_t /*entry*/) {}

  /// Call before a forward, or a backward: `wave` is that of its gathers (exec/gather_layout.hpp).
  virtual void begin_wave(const MicroBatchCall& /*call*/, int /*wave*/) {}
  /// Before an instruction runs, and after: holds the gathered parameters that it reads.
  virtual void before(std::size_t /*instruction*/) {}
  virtual void after(std::size_t /*instruction*/) {}
  /// Seconds of waiting for gathers since begin_wave().
  [[nodiscard]] virtual double gather_seconds() const { return 0; }
  /// After an error of this worker: returns when its instructions do not wait for other ranks any more.
  virtual void abandon() noexcept {}

  /// Call before running instructions: points the runner to this micro-batch's memory.
  virtual void bind() = 0;
  /// The instructions' operands, except for gradient slots.
  [[nodiscard]] virtual MicroBatchOperands operands(const MicroBatchCall& call) const = 0;
  /// Call before a bucket is written, and after.
  virtual void opened(const comm::GradientBuffer& /*buffer*/) {}
  virtual void closing(const comm::GradientBuffer& /*buffer*/) {}
  /// What instructions have computed, in host memory; valid until the next begin().
  [[nodiscard]] virtual const void* made(const Location& location, std::size_t bytes, const MicroBatchCall& call) = 0;
  /// Call after its last instruction: returns when everything is computed and the results are on the host.
  virtual void finish() {}
  /// Null if the program has none.
  [[nodiscard]] virtual const float* result(const Location& location) const = 0;
  /// Whether the host can time kernels.
  [[nodiscard]] virtual bool times_kernels() const { return false; }
};

class CpuPartMicroBatch final : public PartMicroBatch {
 public:
  CpuPartMicroBatch(const ProgramSetup& setup, MicroBatchRunner& runner);

  [[nodiscard]] std::byte* message(FromParts what, std::size_t entry) override {
    return (what == FromParts::value ? values_ : gradients_)[entry].data();
  }
  void begin(const MicroBatchCall& /*call*/) override {}
  void bind() override { runner_.begin(arena_.data()); }
  [[nodiscard]] MicroBatchOperands operands(const MicroBatchCall& call) const override;
  [[nodiscard]] const void* made(const Location& location, std::size_t /*bytes*/, const MicroBatchCall& call) override {
    return runner_.at(location, operands(call));
  }
  [[nodiscard]] const float* result(const Location& location) const override { return runner_.result(location); }
  [[nodiscard]] bool times_kernels() const override { return true; }

 private:
  MicroBatchRunner& runner_;
  AlignedBytes arena_;
  std::vector<AlignedBytes> values_, gradients_;
  std::vector<const void*> values_at_, gradients_at_;
};

}  // namespace lockstep::exec
