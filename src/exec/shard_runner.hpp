// ShardRunner: one worker's copy of a compiled program: kernels and an arena, run for one shard at a time. On a GPU all
// pointers are to its memory, and to run is to launch the kernels on a stream.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/trace.hpp"
#include "device/gpu/gpu_lane.hpp"
#include "exec/device.hpp"
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
  std::span<const void* const>
      low_precision;                     ///< per Graph::parameters: its low-precision copy on a GPU, null where none is
  std::span<const float* const> states;  ///< per Graph::states
  std::span<const SlotMemory> slots;     ///< per Program::slots; filled by `before` before first use
  const StepContext* step = nullptr;
  const StepContext* step_of_kernels = nullptr;  ///< the same, where the kernels can read it
  float loss_scale = 1;                          ///< a power of two
  const float* loss_scale_of_kernels = nullptr;  ///< the same, on a GPU
};

/// Kernels of every node for one worker.
class KernelSet {
 public:
  /// Throws Error(configuration) for an op that has none for this device. `algorithms`: what algorithms() said on the
  /// rank whose algorithms are to be taken; throws Error(usage) where they cannot be.
  KernelSet(const Graph& graph, Mode mode, const Device& device, std::size_t worker = 0,
            const std::vector<std::string>& algorithms = {});
  [[nodiscard]] Kernel* at(std::int32_t node) const { return kernels_[static_cast<std::size_t>(node)].get(); }
  [[nodiscard]] std::size_t workspace_bytes(std::int32_t node) const;
  /// What kernels chose of a library's algorithms, by layer: "linear 'head': ..."; empty on the CPU.
  [[nodiscard]] std::vector<std::string> algorithms() const;
  /// For errors: "conv 'stem'".
  [[nodiscard]] const std::string& label(std::int32_t node) const { return labels_[static_cast<std::size_t>(node)]; }
  /// Elements of each input of a loss, whose gradients are scaled; empty for all others.
  [[nodiscard]] const std::vector<std::int64_t>& loss_inputs(std::int32_t node) const {
    return loss_inputs_[static_cast<std::size_t>(node)];
  }
  /// Whether they are: with products in float16.
  [[nodiscard]] bool scales_loss() const { return scales_loss_; }

 private:
  std::vector<std::unique_ptr<Kernel>> kernels_;  // null for views
  std::vector<std::string> labels_;
  std::vector<std::vector<std::int64_t>> loss_inputs_;
  bool scales_loss_ = false;
};

class ShardRunner {
 public:
  /// `lane`: null on the CPU. It must outlive the runner.
  ShardRunner(const Program& program, KernelSet kernels, device::GpuLane* lane = nullptr);

  /// Of one worker, beside parameters, inputs and gradients.
  [[nodiscard]] static std::size_t arena_bytes(const Program& program);

  /// Before a shard's first instruction. Returns where the arena is: on a GPU it may have moved, for a larger program.
  const std::byte* begin();
  /// One instruction of the program. In their order, all of them.
  void run(std::size_t number, const ShardBinding& binding);

  /// Seconds inside kernels are added to `seconds` from now on; null: nobody wants to know.
  void time_kernels(double* seconds) { kernel_seconds_ = seconds; }
  /// Ops are ranges from now on; null: nobody hears of them.
  void tell_ops(TraceRanges* ranges) { ranges_ = ranges; }

  /// A result of the last shard, where the kernels wrote it.
  [[nodiscard]] const float* result(const Location& location) const;
  /// For errors: "conv 'stem'".
  [[nodiscard]] const std::string& label(std::size_t instruction) const;

 private:
  /// A slot that is added to, and what a kernel that can only overwrite wrote in its stead.
  struct Aside {
    float* slot = nullptr;
    const float* written = nullptr;
    std::int64_t elements = 0;
  };

  void add(DType dtype, const void* left, const void* right, void* sum, std::int64_t n);
  /// Returns which of the slots the kernel itself is to add to, a bit each.
  std::uint64_t set_aside(const std::vector<Location>& slots, const ShardBinding& binding, const Kernel* adding,
                          std::vector<void*>& pointers);
  void add_aside();
  /// The one place where the loss is scaled: its gradients, as its kernel has made them.
  void scale_loss(std::int32_t node, const ShardBinding& binding);
  void bind(const std::vector<Location>& from, const ShardBinding& binding, std::vector<void*>& to) const;
  [[nodiscard]] void* pointer(const Location& location, const ShardBinding& binding) const;

  const Program& program_;
  KernelSet kernels_;
  device::GpuLane* lane_;
  AlignedBytes memory_;                                  ///< on the CPU
  std::byte *arena_ = nullptr, *aside_start_ = nullptr;  ///< set by begin()
  std::vector<Aside> aside_;
  double* kernel_seconds_ = nullptr;
  TraceRanges* ranges_ = nullptr;
  // Scratch for operand lists; kept so that a step allocates nothing.
  std::vector<void*> inputs_, parameters_, states_, outputs_, saved_, statistics_;
  std::vector<void*> output_gradients_, input_gradients_, parameter_gradients_;
};

}  // namespace lockstep::exec
