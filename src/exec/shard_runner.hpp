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

/// What differs by shard and step.
struct ShardBinding {
  std::span<const void* const> inputs;       ///< per Graph::inputs
  std::span<const float* const> parameters;  ///< per Graph::parameters
  std::span<const float* const> states;      ///< per Graph::states
  std::span<float* const> slots;             ///< per Program::slots; filled by `open` before first use
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

  /// A result of the last shard.
  [[nodiscard]] const float* result(const Location& location) const;

 private:
  void execute(const Instruction& instruction, const ShardBinding& binding);
  void bind(const std::vector<Location>& from, const ShardBinding& binding, std::vector<void*>& to) const;
  [[nodiscard]] void* pointer(const Location& location, const ShardBinding& binding) const;

  const Program& program_;
  KernelSet kernels_;
  AlignedBytes arena_;
  // Scratch for operand lists; kept so that a step allocates nothing.
  std::vector<void*> inputs_, parameters_, states_, outputs_, saved_, statistics_;
  std::vector<void*> output_gradients_, input_gradients_, parameter_gradients_;
};

}  // namespace lockstep::exec
