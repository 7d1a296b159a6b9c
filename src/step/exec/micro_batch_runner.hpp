// MicroBatchRunner: a compiled program on one worker: its kernels and the memory of its activations, run for one
// micro-batch at a time. On a GPU, running an instruction means launching it on the worker's stream.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/trace.hpp"
#include "graph/program.hpp"
#include "lockstep/op.hpp"
#include "step/exec/kernel_set.hpp"
#include "step/exec/parameters.hpp"

namespace lockstep::exec {

/// Where a gradient or statistic of a micro-batch is written.
struct SlotMemory {
  float* data = nullptr;
  bool add = false;  ///< add to the existing values instead of overwriting them
};

/// What differs by micro-batch and step, in device memory.
struct MicroBatchOperands {
  std::span<const void* const> inputs;  ///< per Graph::inputs
  const ModelView& model;
  std::span<const SlotMemory> slots;  ///< per Program::slots; each is set before the instruction that writes it
  const StepContext* context = nullptr;
  std::uint64_t step = 0;                                   ///< context->step, for errors
  const float* loss_scale = nullptr;                        ///< factor of the gradients that the loss makes; null: none
  std::span<const void*const> received = {}, arrived = {};  ///< for a part: per PartBoundary::received and arrivals
};

class MicroBatchRunner {
 public:
  MicroBatchRunner(const Program& program, KernelSet kernels);

  /// Memory of one worker, besides parameters, inputs and gradients.
  [[nodiscard]] static std::size_t arena_bytes(const Program& program);

  /// Call before a micro-batch's first instruction: its memory, of arena_bytes().
  void begin(std::byte* arena);
  /// The same with the stream's memory (WorkerStream::reserve_arena).
  void begin();
  /// Runs one instruction of the program. The caller runs them all, in order.
  void run(std::size_t number, const MicroBatchOperands& operands);

  /// From now on, seconds inside kernels are added to `seconds`, unless it is null.
  void time_kernels(double* seconds) { kernel_seconds_ = seconds; }
  /// From now on, each op is marked as a range, unless `ranges` is null.
  void mark_ops(TraceRanges* ranges) { ranges_ = ranges; }

  const KernelSet& kernels() const { return kernels_; }
  /// A result of the last micro-batch, in device memory; null if the program has none.
  const float* result(const Location& location) const;
  /// Address of something that a part sends (Program::sent, received_gradients).
  const void* at(const Location& location, const MicroBatchOperands& operands) const {
    return pointer(location, operands);
  }
  /// For errors: "conv 'stem'".
  const std::string& label(std::size_t instruction) const;

 private:
  /// What a kernel that cannot add has written, and that is still to be added to a slot.
  struct ScratchGradient {
    float* slot = nullptr;
    const float* scratch = nullptr;
    std::int64_t elements = 0;
  };

  void run_forward(const Instruction& instruction, const MicroBatchOperands& operands);
  void run_backward(const Instruction& instruction, const MicroBatchOperands& operands);
  /// Points `pointers` to scratch memory for slots that need adding, except those for which `kernel` adds itself; sets
  /// a bit for each of the latter. A null kernel never adds.
  std::uint64_t use_scratch(const std::vector<Location>& slots, const MicroBatchOperands& operands,
                            const Kernel* kernel, std::vector<void*>& pointers);
  void add_scratch();
  /// Scales the gradients that the loss kernel has just made; the loss is scaled nowhere else.
  void scale_loss(std::int32_t node, const float* factor);
  /// Multiplies what a loss has just made, tensors of so many elements, by a factor for each of the samples.
  void scale_rows(const std::vector<void*>& values, std::span<const std::int64_t> elements, std::int64_t samples,
                  const float* factors);
  void bind(const std::vector<Location>& from, const MicroBatchOperands& operands, std::vector<void*>& to) const;
  void* pointer(const Location& location, const MicroBatchOperands& operands) const;

  const Program& program_;
  KernelSet kernels_;
  WorkerStream& stream_;
  std::byte *arena_ = nullptr, *scratch_ = nullptr;  ///< set by begin()
  std::vector<ScratchGradient> scratch_gradients_;   ///< of the current instruction
  const float* weights_ = nullptr;                   ///< [samples], of the current instruction, if it is weighted
  double* kernel_seconds_ = nullptr;
  TraceRanges* ranges_ = nullptr;
  // Operand lists, reused so that a step allocates nothing.
  std::vector<void*> inputs_, parameters_, states_, outputs_, saved_, statistics_;
  std::vector<void*> output_gradients_, input_gradients_, parameter_gradients_;
};

}  // namespace lockstep::exec
