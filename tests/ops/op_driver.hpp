// The op driver's tools: a concrete case (Problem), and one run of a kernel on it in guarded buffers (KernelRun).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/op_case.hpp"

namespace lockstep::ops {

/// The cases of every op folder; written by CMake.
[[nodiscard]] std::vector<OpCases> all_cases();

/// By op: the functors of its GPU kernels, run on the CPU over the whole grid (device/gpu/grid.hpp); written by CMake.
[[nodiscard]] std::map<std::string, KernelFactory> host_grid_kernels();

/// "" (none), and the epilogues that the op's kernels on the device can apply to its output.
[[nodiscard]] std::vector<std::string> epilogues_of(const OpDef& op, DeviceKind device);

/// All tensors of one case. Values are functions of the case's name and the tensor's position only.
struct Problem {
  const OpDef* op = nullptr;
  Attributes attributes;
  Mode mode = Mode::training;
  std::vector<TensorSpec> input_specs;
  Signature signature;
  std::vector<Tensor> inputs, parameters, states;
  std::vector<Tensor> output_gradients;  ///< gradient of output 0; none for a loss
  StepContext step;
  std::string epilogue;  ///< from KernelRequest

  [[nodiscard]] bool trains() const { return mode == Mode::training && op->differentiable; }
  [[nodiscard]] bool wants_gradient(std::size_t input) const;  ///< a float input that is not constant
  /// Of those, whether backward writes its gradient: with an epilogue, an op that passes its gradient on makes one for
  /// all.
  [[nodiscard]] bool makes_gradient(std::size_t input) const;
  [[nodiscard]] std::unique_ptr<Kernel> make_kernel() const;  ///< the CPU's
  [[nodiscard]] std::unique_ptr<Kernel> make_kernel(const KernelFactory& factory) const;
};

/// `empty_batch`: dimension 0 of every input is 0 instead.
[[nodiscard]] Problem make_problem(const OpDef& op, const OpCase& the_case, bool empty_batch = false);

/// Memory between two guards of 64 bytes.
class GuardedBuffer {
 public:
  GuardedBuffer(std::size_t bytes, std::size_t shift, std::byte junk);
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool intact() const;  ///< nothing was written outside
  [[nodiscard]] bool untouched(std::byte junk) const;
  void junk(std::byte junk);

 private:
  AlignedBytes block_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Which memory a kernel writes to: output 0 in forward, input gradient 0 in backward.
enum class Over : std::uint8_t { junk, first_input, second_input, gradient };

struct RunOptions {
  std::size_t shift = 0;               ///< buffers start this many multiples of 64 bytes later
  std::byte junk{0xff};                ///< contents of fresh memory: 0xff makes NaNs
  std::vector<bool> want_inputs = {};  ///< empty: all that can have a gradient
  std::vector<bool> want_parameters = {};
  std::uint64_t add_to = 0;  ///< see BackwardCall
  void* stream = nullptr;    ///< for all calls
  /// backward gets a second term of a gradient (BackwardCall): with an epilogue of that of output 0, which is output 0
  /// itself, else of that of input 0, which is input 0.
  bool second_term = false;
};

/// One run of a kernel. Backward gets null pointers for everything that it does not declare to read; its workspace is
/// filled with junk again when it begins.
class KernelRun {
 public:
  explicit KernelRun(const Problem& problem, RunOptions options = {});
  void forward(Kernel& kernel, Over over = Over::junk);
  void backward(Kernel& kernel, Over over = Over::junk);
  /// After forward: output 0 is junk, and recomputed.
  void recompute(Kernel& kernel);
  /// What backward finds in place of forward's results.
  void set_outputs(const std::vector<std::vector<std::byte>>& outputs);

  /// Empty: no guard was overwritten, no input changed, no unwanted gradient written.
  [[nodiscard]] std::string damage() const;
  using Bytes = std::vector<std::byte>;
  [[nodiscard]] std::vector<Bytes> outputs() const { return copy(outputs_); }
  [[nodiscard]] std::vector<Bytes> statistics() const { return copy(statistics_); }
  [[nodiscard]] std::vector<Bytes> input_gradients() const { return copy(input_gradients_); }
  [[nodiscard]] std::vector<Bytes> parameter_gradients() const { return copy(parameter_gradients_); }

 private:
  using Buffers = std::vector<GuardedBuffer>;
  [[nodiscard]] static std::vector<Bytes> copy(const Buffers& buffers);
  [[nodiscard]] Buffers make(const std::vector<Tensor>& tensors);
  [[nodiscard]] Buffers make(const std::vector<std::size_t>& sizes);
  void prepare(Kernel& kernel);
  /// Moves the operand, with its bytes, to the memory of `over`.
  static void move(const GuardedBuffer& operand, const GuardedBuffer& over, const void*& pointer);
  [[nodiscard]] bool wanted(std::size_t input) const;

  const Problem& problem_;
  RunOptions options_;
  std::size_t made_ = 0;
  Buffers inputs_, parameters_, states_, output_gradients_;
  Buffers outputs_, saved_, statistics_, input_gradients_, parameter_gradients_, workspace_;
};

[[nodiscard]] DoubleTensor to_doubles(const Tensor& tensor);
[[nodiscard]] DoubleTensor to_doubles(const std::vector<std::byte>& bytes, const TensorSpec& spec);

}  // namespace lockstep::ops
