// Ops: what an op is (OpDef), the code that computes it (Kernel), and the list of ops (OpRegistry).
//
// Gradients are those of the loss summed over samples (or tokens): the division by the global count happens once, at
// the update. backward() overwrites every gradient it is given, except those named by `add_to`; where a value is used
// several times, the compiler adds its gradients in graph order. A null pointer in `input_gradients` or
// `parameter_gradients` means that this gradient is not wanted. If none is wanted, backward() is not called.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/device.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep {

class GraphBuilder;
struct GpuKernelOptions;  // for lockstep's own GPU kernels

enum class Mode : std::uint8_t { training, inference };

struct ParameterSpec {
  std::string name;  ///< "weight", "bias"; the parameter is called "<node>.<name>"
  Shape shape;
  Initializer initializer;
  bool decay = true;  ///< weight decay applies by default
};

/// A state of an op. In training, forward() writes a statistic of this shape for each micro-batch. The statistics are
/// averaged over the micro-batches, by the same tree as the gradients; then new = (1 - momentum) * old + momentum *
/// average.
struct StateSpec {
  std::string name;
  Shape shape;
  Initializer initializer;
  double momentum = 0.1;
};

/// What an op derives from the shapes of its inputs.
struct Signature {
  std::vector<TensorSpec> outputs;
  std::vector<ParameterSpec> parameters;
  std::vector<StateSpec> states;
  std::vector<TensorSpec> saved;  ///< what forward() leaves for backward()
};

/// Floating-point operations for one micro-batch; a multiply-add counts as two.
struct Cost {
  double forward_flops = 0;
  double backward_flops = 0;
};

/// Everything random or positional that a kernel may depend on; never a rank or a thread.
struct StepContext {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::int64_t first_position = 0;       ///< position of the micro-batch's first sample in the global batch
  std::uint64_t parameters_version = 0;  ///< changes with every update: a key for caches of packed weights
};

/// What a kernel is made for. The pointers are valid only while it is made.
struct KernelRequest {
  std::string node;
  const Attributes* attributes = nullptr;  ///< complete: every attribute that the op declares is present
  Mode mode = Mode::training;
  std::vector<TensorSpec> inputs, parameters, states, outputs, saved;
  std::string epilogue;  ///< an op of OpDef::epilogues that the kernel applies to its output; empty: none
  /// Operands of matrix multiplications are rounded to this type (Node::compute_type).
  DType compute_type = DType::f32;
  /// Parameter 0 and its gradient have channels last in memory (Value::channels_last). `parameters` still has the
  /// model's shape.
  bool channels_last = false;
  /// How the gradient is stored of a loss's input 0, or of another op's output 0; see OpDef::rounds_gradient.
  RoundedGradient rounded_gradient = {};
  /// Whether the kernel may keep a packed or rounded weight from one call to the next.
  bool keeps_weights = true;
  const GpuKernelOptions* gpu = nullptr;  ///< null on the CPU
};

/// Tensors are in the order of the KernelRequest, row-major; they overlap only where OpDef::in_place allows it.
struct ForwardCall {
  std::span<const void*const> inputs, parameters, states;
  std::span<float* const> statistics;  ///< written: one per state, for this micro-batch; empty in inference
  std::span<void*const> outputs, saved;
  void* workspace = nullptr;          ///< scratch memory of Kernel::workspace_bytes()
  const StepContext* step = nullptr;  ///< on a GPU: in device memory, read when the kernel runs
  void* stream = nullptr;             ///< on a GPU: the stream to launch on; null on the CPU
};

struct BackwardCall {
  std::span<const void*const> inputs, parameters, states, outputs, saved;
  std::span<const void* const> output_gradients;  ///< of output 0 alone; empty for a loss, whose gradient is 1
  std::span<void* const> input_gradients;         ///< null where not wanted
  std::span<float* const> parameter_gradients;    ///< null where not wanted; always float32
  /// Bit i: add the gradient of parameter i to what the memory holds, instead of overwriting it. Only set where
  /// Kernel::adds_gradient(i) is true.
  std::uint64_t add_to = 0;
  void* workspace = nullptr;          ///< as in ForwardCall
  const StepContext* step = nullptr;  ///< as in ForwardCall
  void* stream = nullptr;             ///< as in ForwardCall
  /// Not null: the gradient of input 0 is the sum of this tensor, which is like it, and of what the kernel computes,
  /// rounded to the tensor's type first. Only set where Kernel::adds_input_gradient() is true.
  const void* input_gradient_term = nullptr;
  /// Not null: the gradient of output 0 is the sum of output_gradients[0] and of this tensor, rounded to its type. Only
  /// set where Kernel::adds_output_gradients() is true.
  const void* output_gradient_term = nullptr;
};

/// The code of one node on one worker: made once for fixed shapes, called for one micro-batch after another. It is
/// single-threaded, and never called by two threads at once. forward() and backward() allocate nothing after their
/// first call.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual std::size_t workspace_bytes() const { return 0; }
  /// Bytes that it keeps between calls, such as packed weights, once it has run in all its directions.
  virtual std::size_t kept_bytes() const { return 0; }
  /// Which algorithms the kernel's library uses, for the record of a run; empty if there was nothing to choose.
  virtual std::string algorithms() const { return ""; }
  virtual void forward(const ForwardCall& call) = 0;
  virtual void backward(const BackwardCall& call);  ///< by default an error: not differentiable
  /// Computes output 0 again, with the bits of forward(), from the inputs and what forward() saved, and writes no
  /// statistics. If it exists, the output need not stay in memory until backward().
  virtual void recompute(const ForwardCall& call);  ///< by default an error
  /// Whether recompute() exists and is cheap: no matrix multiplication, no second pass over all samples.
  virtual bool can_recompute() const { return false; }
  /// Whether backward() can add the gradient of this parameter to what the memory holds (BackwardCall::add_to). The
  /// bits must be the same as if it were written elsewhere and then added: each element is rounded to float32 once,
  /// before it is added.
  virtual bool adds_gradient(std::size_t /*parameter*/) const { return false; }
  /// Whether backward() can add the gradient of input 0 to another one (BackwardCall::input_gradient_term), which may
  /// be where the sum is written.
  virtual bool adds_input_gradient() const { return false; }
  /// Whether backward() can take the gradient of output 0 as two terms (BackwardCall::output_gradient_term).
  virtual bool adds_output_gradients() const { return false; }
};

using KernelFactory = std::function<std::unique_ptr<Kernel>(const KernelRequest&)>;

/// What backward() reads. All other tensors of forward() are freed or overwritten before; `saved` is always kept.
struct BackwardReads {
  bool inputs = false;
  bool outputs = false;
};

/// Where a kernel may write over what it reads: it must have read an element for the last time before it writes there.
struct InPlace {
  bool forward = false;        ///< output 0 over input 0; with two inputs, over either that has its size
  bool over_gradient = false;  ///< the gradient of input 0 over that of the output
  bool over_input = false;     ///< the gradient of input 0 over input 0
};

enum class OpKind : std::uint8_t {
  layer,   ///< tensors in, tensors out; may be an entry of a `layers:` list
  loss,    ///< inputs (prediction, target); outputs (loss [b] f32, count [b] f32), both sums over a sample
  metric,  ///< inputs and outputs as a loss, without a gradient; reported as sum of values / sum of counts. With
           ///< `report` the first output may be [b, k], k values of a sample
  fused,   ///< a layer that only lowering makes, of several others; no model can name it
  sum,     ///< two losses as one: inputs (loss, count) of both, outputs as a loss; made where a job has several losses
};

/// What a loss's targets are. Where the data set says that some are not, no step is made.
enum class TargetKind : std::uint8_t {
  numbers,        ///< of any size
  shares,         ///< numbers from 0 to 1, or two classes, 0 and 1
  probabilities,  ///< numbers from 0 to 1 that add up to 1, over the prediction's last dimension
  classes,        ///< i32: which of the prediction's last dimension; f32: numbers
};

class OpDef {
 public:
  std::string name;  ///< "layer_norm"
  std::string doc;   ///< one line
  OpKind kind = OpKind::layer;
  std::vector<AttributeSpec> attributes;
  std::string shorthand;  ///< the attribute that a bare value sets, as in `dropout: 0.2`; empty: none
  int min_inputs = 1;
  int max_inputs = 1;            ///< -1: any number
  bool view = false;             ///< output 0 is input 0 with another shape: no kernel runs
  bool differentiable = true;    ///< has a gradient
  bool passes_gradient = false;  ///< the gradient of every input is that of the output (add): no kernel runs backward
  bool multiplies = false;       ///< computes by matrix multiplications, whose operands may be rounded (linear, conv)
  std::vector<int> constant_inputs;  ///< these inputs never get a gradient (indices, labels)
  BackwardReads backward_reads;
  InPlace in_place;
  /// Losses: "softmax" or "sigmoid" if the loss makes probabilities of the prediction by that itself. `predict` and
  /// `eval` then show probabilities, and no target is normalized. Empty: it compares numbers of any scale.
  std::string activation;
  TargetKind targets = TargetKind::numbers;  ///< losses
  bool compares_samples = false;  ///< losses: a sample's depends on its whole micro-batch, so no sample has a weight
  bool exponential = false;       ///< metrics: reported as exp(sum / sum) (perplexity)
  bool root = false;              ///< metrics: reported as the root of sum / sum (rmse)
  /// Metrics: what is reported of the sums over all samples, of each value and, last, of the count (r2, mean_iou).
  std::function<double(std::span<const double> sums)> report;
  /// Metrics of all samples together, which no sums tell (auc): what is reported of the first output's values,
  /// [samples, values] in the order of the samples' numbers. Evaluations only: a training step does not report it.
  std::function<double(std::span<const float> values, std::size_t samples)> of_samples;
  /// Metrics that also have a value for each class, reported as CLASS/NAME where classes have names (Node::classes):
  /// the values, NaN for a class that does not occur.
  struct OfClass {
    std::string name;
    std::function<std::vector<double>(std::span<const double> sums)> values;
  };
  std::optional<OfClass> of_class;
  bool whole_numbers = false;    ///< metrics: values and counts are whole numbers, whose sums need no order
  bool higher_is_better = true;  ///< metrics: for `best` and `early_stop`

  /// Shape inference; dimension 0 of the inputs is the micro-batch's batch. Throws Error(configuration) that says what
  /// was expected and what was found; the builder adds the name of the node and its place in the job file.
  std::function<Signature(const Attributes&, std::span<const TensorSpec> inputs)> infer;
  std::function<Cost(const Attributes&, std::span<const TensorSpec> inputs, const Signature&)> cost;

  /// Where a layer with such attributes is made of other ops (a bidirectional one, of two of one direction): adds their
  /// nodes, whose names begin with `name` and a dot, and returns the output, called `name`. None: a node of this op.
  std::function<std::optional<ValueId>(GraphBuilder&, const std::vector<ValueId>& inputs, const Attributes&,
                                       const std::string& name)>
      compose;

  std::map<DeviceKind, KernelFactory> kernels;
  /// On these devices the factory is also asked for kernels with low-precision tensors (bf16, f16), and returns null if
  /// it has none. On other devices kernels see float32 only: low-precision tensors are cast around them.
  std::set<DeviceKind> takes_low_precision;
  /// On these devices the kernel is faster if parameter 0, a weight [f, c, h, w], and its gradient have channels last.
  /// It must work with both orders.
  std::set<DeviceKind> channels_last;
  /// On these devices the kernel of a loss can round the gradient of input 0, and that of another op can read such a
  /// gradient of output 0 (Value::rounded_gradient).
  std::set<DeviceKind> rounds_gradient;
  /// Names of ops that the kernel can apply to output 0 while it writes it, with the bits of running both kernels one
  /// after the other. backward() then gets the epilogue's output as output 0, and that output's gradient. If the op
  /// also has `passes_gradient`, its backward() is called after all, and computes the gradient of input 0, which is
  /// that of all inputs.
  std::map<DeviceKind, std::vector<std::string>> epilogues;
};

/// The ops of a program: the built-in ones and those that the embedding program adds. Addresses are stable.
class OpRegistry {
 public:
  /// Throws Error(usage) if the name is taken, or if the op has no `infer`.
  OpDef& add(OpDef op);
  /// Adds a kernel for a device, or replaces the op's own. It gets no epilogues, and weights in the model's order.
  /// `takes_low_precision`, `rounds_gradient`: see OpDef. Throws as at() does.
  void add_kernel(const std::string& op, DeviceKind device, KernelFactory factory, bool takes_low_precision = false,
                  bool rounds_gradient = false);
  const OpDef* find(const std::string& name) const;  ///< null if absent
  const OpDef& at(const std::string& name) const;    ///< throws Error(internal) if absent
  std::vector<const OpDef*> all() const;             ///< by name

 private:
  std::map<std::string, std::unique_ptr<OpDef>> ops_;
};

}  // namespace lockstep
