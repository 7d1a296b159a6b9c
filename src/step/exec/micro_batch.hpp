// MicroBatch: a micro-batch where it is computed, from its inputs and the first message that it receives until its
// results are on the host and its last message has left. It is all that differs for a worker between a CPU
// (CpuMicroBatch) and a GPU (GpuMicroBatch). Messages are received in host memory and sent from there: on a CPU this is
// the memory in which kernels compute; on a GPU they are copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/reduce/gradient_reducer.hpp"
#include "lockstep/tensor.hpp"
#include "step/exec/device.hpp"
#include "step/exec/fetched_parameters.hpp"
#include "step/exec/micro_batch_gradients.hpp"
#include "step/exec/micro_batch_runner.hpp"

namespace lockstep::exec {

/// What other parts of a model send: the values of PartBoundary::received, the gradients of its arrivals.
enum class FromParts : std::uint8_t { value, gradient };

class MicroBatch {
 public:
  MicroBatch() = default;
  MicroBatch(const MicroBatch&) = delete;
  MicroBatch& operator=(const MicroBatch&) = delete;
  virtual ~MicroBatch() = default;

  /// Where entry `entry` of PartLinks::received, or arrivals, is received, in host memory.
  [[nodiscard]] virtual std::byte* message(FromParts what, std::size_t entry) = 0;
  /// The entry has been received: instructions that run from here on may read it.
  virtual void received(FromParts /*what*/, std::size_t /*entry*/) {}

  /// Call when the inputs are on the host; the call must live until the last instruction.
  virtual void begin(const MicroBatchCall& /*call*/) {}
  /// Call before the instructions of a pass; `wave`: of its gathers (step/exec/gather_layout.hpp).
  virtual void begin_pass(const MicroBatchCall& call, int wave) = 0;
  /// Points the runner to this micro-batch's memory; call when another one may have run since.
  virtual void bind() = 0;
  /// The instructions' operands, except for gradient slots.
  virtual MicroBatchOperands operands(const MicroBatchCall& call) const = 0;

  /// End of the instructions, from `first` on, that are run together.
  virtual std::size_t end_of_segment(std::size_t first, const MicroBatchGradients& gradients) const = 0;
  /// Before a segment, and after: holds the parameters that it reads, if ranks or hosts divide them.
  virtual void before(std::size_t first) = 0;
  virtual void after(std::size_t last) = 0;
  /// Call before a bucket is written, and after.
  virtual void opened(const comm::GradientBuffer& /*buffer*/) {}
  virtual void closing(const comm::GradientBuffer& /*buffer*/) {}
  /// Runs a segment, which writes into these buffers.
  virtual void run(std::size_t first, std::size_t end, const MicroBatchOperands& operands,
                   std::span<const comm::GradientBuffer> buffers) = 0;
  /// Seconds of waiting for parameters since begin_pass().
  virtual double waited() const = 0;

  /// What instructions have computed, in host memory; valid until the next begin().
  [[nodiscard]] virtual const void* made(const Location& location, std::size_t bytes, const MicroBatchCall& call) = 0;
  /// Call after the last instruction: returns when everything is computed and the results are on the host.
  virtual void finish() {}
  /// After an error of this worker: returns when its instructions do not wait for other ranks any more.
  virtual void abandon() noexcept {}
  /// Null if the program has none.
  virtual const float* result(const Location& location) const = 0;
  /// Whether the host can time kernels.
  virtual bool times_kernels() const { return false; }
};

/// Kernels write gradients into the reducer's buffers, and are done when they return.
class CpuMicroBatch final : public MicroBatch {
 public:
  CpuMicroBatch(const ProgramSetup& setup, MicroBatchRunner& runner);

  [[nodiscard]] std::byte* message(FromParts what, std::size_t entry) override {
    return (what == FromParts::value ? values_ : gradients_)[entry].data();
  }
  void begin_pass(const MicroBatchCall& call, int wave) override;
  void bind() override { runner_.begin(arena_.data()); }
  MicroBatchOperands operands(const MicroBatchCall& call) const override;
  std::size_t end_of_segment(std::size_t first, const MicroBatchGradients& /*gradients*/) const override {
    return first + 1;
  }
  void before(std::size_t first) override { parameters_.before(first); }
  void after(std::size_t last) override { parameters_.after(last); }
  void run(std::size_t first, std::size_t /*end*/, const MicroBatchOperands& operands,
           std::span<const comm::GradientBuffer> /*buffers*/) override {
    runner_.run(first, operands);
  }
  double waited() const override { return parameters_.seconds(); }
  [[nodiscard]] const void* made(const Location& location, std::size_t /*bytes*/, const MicroBatchCall& call) override {
    return runner_.at(location, operands(call));
  }
  const float* result(const Location& location) const override { return runner_.result(location); }
  bool times_kernels() const override { return true; }

 private:
  MicroBatchRunner& runner_;
  AlignedBytes arena_;
  std::vector<AlignedBytes> values_, gradients_;
  std::vector<const void*> values_at_, gradients_at_;
  ParameterReader parameters_;
};

}  // namespace lockstep::exec
