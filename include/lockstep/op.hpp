// Ops: what an op is (OpDef), what it computes with (Kernel), and where ops are listed (OpRegistry).
//
// Gradient contract: backward *overwrites* each gradient it is given, but for those of `add_to`; the compiler adds the
// gradients of a value that is used several times, in graph order. Gradients are of the *sum* of the loss over samples
// (or tokens): the division by the global count happens once, at the update. A null pointer in `input_gradients` or
// `parameter_gradients` means that this gradient is not wanted; backward is not called when none is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/device.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep {

class GpuStream;  // of the CUDA module

enum class Mode : std::uint8_t { training, inference };

struct ParameterSpec {
  std::string name;  ///< "weight", "bias"; the parameter is called "<node>.<name>"
  Shape shape;
  Initializer initializer;
  bool decay = true;
};

/// A state is fed by statistics that forward writes per shard in training; they are averaged over the shards
/// by the same tree as the gradients, then new = (1 - momentum) * old + momentum * average.
struct StateSpec {
  std::string name;
  Shape shape;
  Initializer initializer;
  double momentum = 0.1;
};

/// What an op makes of its inputs' shapes.
struct Signature {
  std::vector<TensorSpec> outputs;
  std::vector<ParameterSpec> parameters;
  std::vector<StateSpec> states;
  std::vector<TensorSpec> saved;
};

struct Cost {
  double forward_flops = 0;
  double backward_flops = 0;
};

/// Everything random or positional that a kernel may depend on. Never a rank, never a thread.
struct StepContext {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::int64_t first_position = 0;       ///< position of the shard's sample 0 in the global batch
  std::uint64_t parameters_version = 0;  ///< changes with every update; a kernel may cache packed weights by it
};

struct KernelRequest {
  std::string node;  ///< its name
  const Attributes* attributes = nullptr;
  Mode mode = Mode::training;
  std::vector<TensorSpec> inputs, parameters, states, outputs, saved;
  std::string epilogue;             ///< one of OpDef::epilogues, or empty: the kernel's output is this op's
  DType compute_type = DType::f32;  ///< of Node
  bool tf32 = false;                ///< of Node
  bool channels_last = false;  ///< of parameter 0, and so of its gradient (Value); `parameters` has the model's shape
  /// Of a GPU: algorithms() of the first rank's kernel: to be taken here, too, or refused by Error(usage). Empty: any.
  std::string algorithms;
  /// That of the calls to come. A GPU's kernel chooses its libraries' algorithms with it; without, it uses none.
  GpuStream* stream = nullptr;
};

struct ForwardCall {
  std::span<const void*const> inputs, parameters, states;
  std::span<float* const> statistics;  ///< one per state, this shard's values; empty in inference
  std::span<void*const> outputs, saved;
  void* workspace = nullptr;
  const StepContext* step = nullptr;  ///< on a GPU, in its memory: a kernel reads it when it runs, not when it is put
  GpuStream* stream = nullptr;        ///< where a GPU's kernel is put, after those before it; null on the CPU
};

struct BackwardCall {
  std::span<const void*const> inputs, parameters, states, outputs, saved;
  std::span<const void* const> output_gradients;  ///< output 0's alone; empty for a loss, whose gradient is 1
  std::span<void* const> input_gradients;         ///< null where not wanted
  std::span<float* const> parameter_gradients;    ///< null where not wanted
  std::uint64_t add_to = 0;  ///< bit i: parameter gradient i is added to what stands there; see adds_gradient()
  void* workspace = nullptr;
  const StepContext* step = nullptr;  ///< on a GPU, in its memory: a kernel reads it when it runs, not when it is put
  GpuStream* stream = nullptr;        ///< where a GPU's kernel is put, after those before it; null on the CPU
};

/// One node's code on one worker, made once for fixed shapes; called for shard after shard, never by two
/// threads at once. Single-threaded. No allocation in forward or backward after the first call.
class Kernel {
 public:
  virtual ~Kernel() = default;
  [[nodiscard]] virtual std::size_t workspace_bytes() const { return 0; }
  /// What it chose of a library's algorithms, for the record of a run; empty: there was nothing to choose.
  [[nodiscard]] virtual std::string algorithms() const { return ""; }
  virtual void forward(const ForwardCall& call) = 0;
  virtual void backward(const BackwardCall& call);  ///< default: throws (not differentiable)
  /// Makes output 0 again, with forward's bits, from the inputs and what forward saved; there are no statistics. So it
  /// need not be kept for backward.
  virtual void recompute(const ForwardCall& call);  ///< default: throws
  /// Whether it can, and for less than the memory is worth: no products of matrices, no second look at all samples.
  [[nodiscard]] virtual bool can_recompute() const { return false; }
  /// Whether backward can add the gradient of parameter i to what stands in its place, with the bits of writing it
  /// elsewhere and adding it after: each element is rounded to float32 before it is added, once.
  [[nodiscard]] virtual bool adds_gradient(std::size_t /*parameter*/) const { return false; }
};

using KernelFactory = std::function<std::unique_ptr<Kernel>(const KernelRequest&)>;

/// What backward reads: decides how long forward's tensors stay in memory. `saved` is always kept.
struct BackwardReads {
  bool inputs = false;
  bool outputs = false;
};

/// Where kernels may write over what they read: an element is read for the last time before its place is written.
struct InPlace {
  bool forward = false;        ///< output 0 over input 0; where there are two inputs, over either
  bool over_gradient = false;  ///< input gradient 0 over the output's gradient
  bool over_input = false;     ///< input gradient 0 over input 0
};

enum class OpKind : std::uint8_t {
  layer,   ///< one tensor or several in, tensors out; may stand in a `layers:` list
  loss,    ///< inputs (prediction, target); outputs (loss [b] f32, count [b] f32), sums per sample
  metric,  ///< the same shape, no gradient: (value [b], count [b]); reported as sum / sum
  fused,   ///< a layer that lowering alone makes, of several others: no model names it
};

class OpDef {
 public:
  std::string name;  ///< "layer_norm"
  std::string doc;   ///< one line
  OpKind kind = OpKind::layer;
  std::vector<AttributeSpec> attributes;
  std::string shorthand;  ///< the attribute that a bare value sets: `dropout: 0.2`; empty: none
  int min_inputs = 1;
  int max_inputs = 1;  ///< -1: any number
  bool view = false;   ///< output 0 has input 0's bytes in another shape: no kernel runs
  bool differentiable = true;
  bool passes_gradient =
      false;                ///< the gradient of every input is the output's gradient (add): no kernel runs backward
  bool multiplies = false;  ///< it is made of products of matrices, whose operands may be rounded (linear, conv)
  /// Input i never gets a gradient (indices, labels).
  std::vector<int> constant_inputs;
  BackwardReads backward_reads;
  InPlace in_place;
  bool exponential = false;      ///< metrics: reported as exp(sum / sum) (perplexity)
  bool higher_is_better = true;  ///< metrics: for `best` and `early_stop`

  /// Shape rule. Throws Error(configuration) that says what was expected and found; the builder adds the
  /// node's name and place. Inputs' dimension 0 is the shard's batch.
  std::function<Signature(const Attributes&, std::span<const TensorSpec> inputs)> infer;
  /// Per shard, for these shapes.
  std::function<Cost(const Attributes&, std::span<const TensorSpec> inputs, const Signature&)> cost;

  std::map<DeviceKind, KernelFactory> kernels;
  /// Whose factories are given requests with low-precision tensors (bf16, f16), too, and return null for those that
  /// they have no kernel for. All others are given float32 only, and what is in low precision is cast before and after.
  std::set<DeviceKind> takes_low_precision;
  /// Whose kernels would rather have parameter 0, a weight [f, c, h, w], and its gradient with channels last, and take
  /// both ways.
  std::set<DeviceKind> channels_last;
  /// Names of ops that the kernels can apply to output 0 on the way, with the bits of both run one after the other.
  /// backward then gets the gradient of what the epilogue made, and sees that as output 0. Where the op
  /// `passes_gradient`, its kernel's backward makes the gradient of input 0, which is that of all inputs.
  std::map<DeviceKind, std::vector<std::string>> epilogues;
};

/// The ops of a program: built-in ones plus what the embedding program adds. Addresses are stable.
class OpRegistry {
 public:
  OpDef& add(OpDef op);  ///< throws Error(usage) if the name is taken
  /// Instead of the op's own for that device, if it has one: with no epilogues, and weights in the model's order.
  /// `takes_low_precision`: see OpDef. Throws as at().
  void add_kernel(const std::string& op, DeviceKind device, KernelFactory factory, bool takes_low_precision = false);
  [[nodiscard]] const OpDef* find(const std::string& name) const;
  [[nodiscard]] const OpDef& at(const std::string& name) const;  ///< throws Error(internal) if absent
  [[nodiscard]] std::vector<const OpDef*> all() const;           ///< by name

 private:
  std::map<std::string, std::unique_ptr<OpDef>> ops_;
};

}  // namespace lockstep
