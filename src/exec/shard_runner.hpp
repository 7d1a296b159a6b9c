// ShardRunner: one worker's copy of a compiled program: kernels and an arena, run for one shard at a time.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "graph/program.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"

namespace lockstep::exec {

/// Where a gradient or statistic of this shard goes.
struct SlotMemory {
  float* data = nullptr;
  bool add = false;  ///< to what stands there, instead of overwriting it
};

/// What differs by shard and step.
struct ShardBinding {
  std::span<const void* const> inputs;       ///< per Graph::inputs
  std::span<const float* const> parameters;  ///< per Graph::parameters
  std::span<const float* const> states;      ///< per Graph::states
  std::span<const SlotMemory> slots;         ///< per Program::slots; filled by `before` before first use
  const StepContext* step = nullptr;
};

/// Kernels of every node for one worker.
class KernelSet {
 public:
  KernelSet(const Graph& graph, Mode mode, DeviceKind device);
  [[nodiscard]] Kernel* at(std::int32_t node) const { return kernels_[static_cast<std::size_t>(node)].get(); }
  [[nodiscard]] std::size_t workspace_bytes(std::int32_t node) const;

 private:
  std::vector<std::unique_ptr<Kernel>> kernels_;  // null for views
};

class ShardRunner {
 public:
  ShardRunner(const Program& program, KernelSet kernels);

  /// Runs all instructions. `before(i)` and `after(i)` are called around instruction i.
  template <class Before, class After>
  void run(const ShardBinding& binding, Before before, After after) {
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      before(i);
      execute(program_.instructions[i], binding);
      after(i);
    }
  }

  /// Seconds inside kernels are added to `seconds` from now on; null: nobody wants to know.
  void time_kernels(double* seconds) { kernel_seconds_ = seconds; }

  /// A result of the last shard.
  [[nodiscard]] const float* result(const Location& location) const;

 private:
  /// A slot that is added to, and what a kernel that can only overwrite wrote in its stead.
  struct Aside {
    float* slot = nullptr;
    const float* written = nullptr;
    std::int64_t elements = 0;
  };

  void execute(const Instruction& instruction, const ShardBinding& binding);
  /// Returns which of the slots the kernel itself is to add to, a bit each.
  std::uint64_t set_aside(const std::vector<Location>& slots, const ShardBinding& binding, const Kernel* adding,
                          std::vector<void*>& pointers);
  void add_aside();
  void bind(const std::vector<Location>& from, const ShardBinding& binding, std::vector<void*>& to) const;
  [[nodiscard]] void* pointer(const Location& location, const ShardBinding& binding) const;

  const Program& program_;
  KernelSet kernels_;
  AlignedBytes arena_, aside_memory_;
  std::vector<Aside> aside_;
  double* kernel_seconds_ = nullptr;
  // Scratch for operand lists; kept so that a step allocates nothing.
  std::vector<void*> inputs_, parameters_, states_, outputs_, saved_, statistics_;
  std::vector<void*> output_gradients_, input_gradients_, parameter_gradients_;
};

}  // namespace lockstep::exec
