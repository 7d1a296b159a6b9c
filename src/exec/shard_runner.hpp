// ShardRunner: a compiled program on one worker: its kernels and the memory of its activations, run for one shard at a
// time. On a GPU, running an instruction means launching it on the worker's stream.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/trace.hpp"
#include "exec/kernel_set.hpp"
#include "exec/parameters.hpp"
#include "graph/program.hpp"
#include "lockstep/op.hpp"

namespace lockstep::exec {

/// Where a gradient or statistic of a shard goes.
struct SlotMemory {
  float* data = nullptr;
  bool add = false;  ///< to what is there, instead of overwriting it
};

/// What differs by shard and step, in memory of the device.
struct ShardOperands {
  std::span<const void* const> inputs;  ///< per Graph::inputs
  const ModelView& model;
  std::span<const SlotMemory> slots;  ///< per Program::slots; each is set before the instruction that writes it
  const StepContext* context = nullptr;
  std::uint64_t step = 0;             ///< context->step, for errors
  const float* loss_scale = nullptr;  ///< what the gradients that the loss makes are multiplied by; null: nothing
  std::span<const void*const> received = {}, arrived = {};  ///< of a part, per PartBoundary::received and arrivals
};

class ShardRunner {
 public:
  ShardRunner(const Program& program, KernelSet kernels);

  /// Memory of one worker, beside parameters, inputs and gradients.
  [[nodiscard]] static std::size_t arena_bytes(const Program& program);

  /// Before a shard's first instruction. Returns where the arena is (WorkerStream::reserve_arena).
  const std::byte* begin();
  /// The same for a shard whose memory, of arena_bytes(), is the caller's: on the CPU.
  void begin(std::byte* arena);
  /// One instruction of the program. They are all run, in their order.
  void run(std::size_t number, const ShardOperands& operands);

  /// From now on the seconds inside kernels are added to `seconds`, unless it is null.
  void time_kernels(double* seconds) { kernel_seconds_ = seconds; }
  /// From now on each op is a range, unless `ranges` is null.
  void mark_ops(TraceRanges* ranges) { ranges_ = ranges; }

  [[nodiscard]] const KernelSet& kernels() const { return kernels_; }
  /// A result of the last shard, in memory of the device; null where the program has none.
  [[nodiscard]] const float* result(const Location& location) const;
  /// Where something is that a part sends (Program::sent, received_gradients).
  [[nodiscard]] const void* at(const Location& location, const ShardOperands& operands) const {
    return pointer(location, operands);
  }
  /// For errors: "conv 'stem'".
  [[nodiscard]] const std::string& label(std::size_t instruction) const;

 private:
  /// What a kernel that cannot add wrote, still to be added to a slot.
  struct ScratchGradient {
    float* slot = nullptr;
    const float* scratch = nullptr;
    std::int64_t elements = 0;
  };

  void run_forward(const Instruction& instruction, const ShardOperands& operands);
  void run_backward(const Instruction& instruction, const ShardOperands& operands);
  /// Points `pointers` to scratch memory for slots that are to be added to, unless `kernel` adds itself: a bit is set
  /// for each of those. A null kernel never does.
  std::uint64_t use_scratch(const std::vector<Location>& slots, const ShardOperands& operands, const Kernel* kernel,
                            std::vector<void*>& pointers);
  void add_scratch();
  /// The one place where the loss is scaled: the gradients that its kernel has just made.
  void scale_loss(std::int32_t node, const float* factor);
  void bind(const std::vector<Location>& from, const ShardOperands& operands, std::vector<void*>& to) const;
  [[nodiscard]] void* pointer(const Location& location, const ShardOperands& operands) const;

  const Program& program_;
  KernelSet kernels_;
  WorkerStream& stream_;
  std::byte *arena_ = nullptr, *scratch_ = nullptr;  ///< set by begin()
  std::vector<ScratchGradient> scratch_gradients_;   ///< of the instruction that is being run
  double* kernel_seconds_ = nullptr;
  TraceRanges* ranges_ = nullptr;
  // Operand lists, kept so that a step allocates nothing.
  std::vector<void*> inputs_, parameters_, states_, outputs_, saved_, statistics_;
  std::vector<void*> output_gradients_, input_gradients_, parameter_gradients_;
};

}  // namespace lockstep::exec
