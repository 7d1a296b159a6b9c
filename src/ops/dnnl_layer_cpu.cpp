#include "ops/dnnl_layer_cpu.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "core/low_precision.hpp"
#include "core/round_up.hpp"
#include "device/cpu/cpu_info.hpp"
#include "device/cpu/dnnl_call.hpp"
#include "device/layer_algorithms.hpp"
#include "ops/layer_trial.hpp"
#include "ops/upcast.hpp"

namespace lockstep::ops {

namespace {

using device::DnnlCall;
using device::DnnlContext;
using device::DnnlDirections;
using device::DnnlTensors;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

constexpr std::size_t aligned(std::size_t bytes) {
  return round_up<std::size_t>(bytes, 64);
}

Type type_of(DType dtype) {
  return dtype == DType::bf16 ? Type::bf16 : Type::f32;
}

DnnlTensors tensors_of(const KernelRequest& request, const DnnlLayerShape& s) {
  const Type compute_type = type_of(request.compute_type);
  DnnlTensors t;
  t.source = {s.source, compute_type, s.activations};
  t.weights = {s.weight, compute_type, Tag::any};
  if (request.parameters.size() > 1) t.bias = {request.parameters[1].shape, Type::f32, Tag::x};
  t.destination = {s.destination, type_of(request.outputs[0].dtype), s.activations};
  t.source_gradient = {s.source, type_of(request.inputs[0].dtype), s.activations};
  t.weight_gradient = {s.weight, Type::f32, Tag::any};
  t.destination_gradient = {s.destination, compute_type, s.activations};
  return t;
}

/// A tensor, cast to the compute type if necessary.
class Operand {
 public:
  /// If a copy is needed, it is placed in the workspace at `at`, which is then advanced past it.
  Operand(const TensorSpec& spec, DType compute_type, std::size_t& at)
      : compute_type_(compute_type),
        elements_(spec.elements()),
        start_(aligned(at)),
        copies_(spec.dtype != compute_type) {
    if (copies_) at = start_ + elements_ * size_of(compute_type);
  }
  const void* read(const void* tensor, void* workspace) const {
    if (!copies_) return tensor;
    auto* const copy = reinterpret_cast<std::uint16_t*>(static_cast<std::byte*>(workspace) + start_);
    downcast(compute_type_, static_cast<const float*>(tensor), copy, elements_);
    return copy;
  }

 private:
  DType compute_type_;
  std::int64_t elements_;
  std::size_t start_;
  bool copies_;
};

/// The weight in the compute type, rounded again when the parameters change; if nothing may be kept, rounded in each
/// call, into the workspace at `at`.
class RoundedWeight {
 public:
  RoundedWeight(const TensorSpec& spec, DType compute_type, bool keeps, std::size_t& at)
      : operand_(spec, compute_type, size_), copy_(keeps ? size_ : 0), start_(aligned(at)) {
    if (!keeps) at = start_ + size_;
  }

  std::size_t bytes() const { return copy_.size(); }

  const void* get(const void* weight, std::uint64_t version, void* workspace) {
    if (size_ == 0) return weight;
    if (copy_.size() == 0) return operand_.read(weight, static_cast<std::byte*>(workspace) + start_);
    if (version_ != version) operand_.read(weight, copy_.data());
    version_ = version;
    return copy_.data();
  }

 private:
  std::size_t size_ = 0;
  Operand operand_;
  AlignedBytes copy_;
  std::size_t start_;
  std::optional<std::uint64_t> version_;
};

/// A copy of the weight in oneDNN's layout, renewed when the parameters change; if nothing may be kept, made in each
/// call, in the workspace at `start`.
class PackedWeight {
 public:
  PackedWeight() = default;
  PackedWeight(const DnnlContext& context, const dnnl::memory::desc& plain, const dnnl::memory::desc& packed,
               std::optional<std::size_t> start)
      : reorder_(device::make_reorder(context, plain, packed)), bytes_(start ? 0 : packed.get_size()), start_(start) {}

  template <class Call>
  const void* get(const DnnlContext& context, RoundedWeight& rounded, const Call& call) {
    const std::uint64_t version = call.step->parameters_version;
    void* const to = start_ ? static_cast<std::byte*>(call.workspace) + *start_ : bytes_.data();
    if (start_ || version_ != version) {
      reorder_.set(DNNL_ARG_FROM, rounded.get(call.parameters[0], version, call.workspace));
      reorder_.set(DNNL_ARG_TO, to);
      reorder_.run(context);
      version_ = version;
    }
    return to;
  }

 private:
  DnnlCall reorder_;
  AlignedBytes bytes_;
  std::optional<std::size_t> start_;
  std::optional<std::uint64_t> version_;
};

class DnnlLayer final : public Kernel {
 public:
  DnnlLayer(const KernelRequest& request, const DnnlLayerShape& shape, const DnnlContext& context,
            const DnnlTensors& tensors, DnnlDirections directions)
      : context_(context),
        tensors_(tensors),
        directions_(std::move(directions)),
        plain_(shape.weight, type_of(request.compute_type), shape.plain_weight),
        plain_gradient_(shape.weight, Type::f32, shape.plain_weight),
        native_(request.compute_type != DType::f32),
        copies_(scratch_and_gradient_bytes()),
        x_(request.inputs[0], request.compute_type, copies_),
        dy_(request.outputs[0], request.compute_type, copies_),
        weight_(request.parameters[0], request.compute_type, request.keeps_weights, copies_) {
    if (!request.keeps_weights) {
      packed_at_ = aligned(copies_);
      copies_ = *packed_at_ + packed_bytes();
    }
    const auto& forward = directions_.forward;
    forward_call_ = call_of(forward, {{DNNL_ARG_SRC, tensors_.source},
                                      {DNNL_ARG_WEIGHTS, forward.weights_desc(0)},
                                      {DNNL_ARG_BIAS, tensors_.bias},
                                      {DNNL_ARG_DST, tensors_.destination}});
    forward_weight_ = PackedWeight(context_, plain_, forward.weights_desc(0), packed_at_);
  }

  std::size_t workspace_bytes() const override { return copies_; }

  std::size_t kept_bytes() const override {
    if (packed_at_) return 0;
    std::size_t packed = directions_.forward.weights_desc(0).get_size();
    if (directions_.source_gradient) packed += directions_.source_gradient.weights_desc(0).get_size();
    return weight_.bytes() + packed;
  }

  /// Only for bfloat16: float32's kernels are covered by the fingerprint.
  std::string algorithms() const override {
    if (!native_) return "";
    const auto name = [](const dnnl::primitive_desc& direction) -> std::string {
      return direction ? direction.impl_info_str() : "";
    };
    return device::LayerAlgorithms{name(directions_.forward), name(directions_.source_gradient),
                                   name(directions_.weight_gradient)}
        .text();
  }

  void forward(const ForwardCall& call) override {
    forward_call_.set(DNNL_ARG_SRC, x_.read(call.inputs[0], call.workspace));
    forward_call_.set(DNNL_ARG_WEIGHTS, forward_weight_.get(context_, weight_, call));
    if (call.parameters.size() > 1) forward_call_.set(DNNL_ARG_BIAS, call.parameters[1]);
    forward_call_.set(DNNL_ARG_DST, call.outputs[0]);
    forward_call_.set(DNNL_ARG_SCRATCHPAD, call.workspace);
    forward_call_.run(context_);
  }

  void backward(const BackwardCall& call) override {
    const void* const dy = dy_.read(call.output_gradients[0], call.workspace);
    if (call.input_gradients[0] != nullptr) backward_source(call, dy);
    const auto& wanted = call.parameter_gradients;
    if (std::any_of(wanted.begin(), wanted.end(), [](const float* p) { return p != nullptr; }))
      backward_weight(call, dy);
  }

 private:
  /// The workspace: scratch, the weight's gradient in oneDNN's layout, a bias's gradient if it is not wanted, and
  /// copies of tensors, including the weight if it may not be kept.
  std::size_t scratch_bytes() const {
    std::size_t bytes = 0;
    for (const auto* direction : {&directions_.forward, &directions_.source_gradient, &directions_.weight_gradient}) {
      if (*direction) bytes = std::max(bytes, direction->scratchpad_desc().get_size());
    }
    return aligned(bytes);
  }
  std::size_t packed_gradient_bytes() const {
    return directions_.weight_gradient ? aligned(directions_.weight_gradient.diff_weights_desc(0).get_size()) : 0;
  }
  /// Size of the larger copy of the weight.
  std::size_t packed_bytes() const {
    const auto& source = directions_.source_gradient;
    return std::max(directions_.forward.weights_desc(0).get_size(), source ? source.weights_desc(0).get_size() : 0);
  }
  std::size_t scratch_and_gradient_bytes() const {
    return scratch_bytes() + packed_gradient_bytes() + tensors_.bias.get_size();
  }

  DnnlCall call_of(const dnnl::primitive_desc& direction,
                   std::vector<std::pair<int, dnnl::memory::desc>> arguments) const {
    arguments.emplace_back(DNNL_ARG_SCRATCHPAD, direction.scratchpad_desc());
    return {context_, dnnl::primitive(direction.get()), arguments};
  }

  // Code for each direction is generated on first use: the first layer's input needs no gradient.
  void make_source_call() {
    const auto& direction = directions_.source_gradient;
    source_call_ = call_of(direction, {{DNNL_ARG_DIFF_DST, tensors_.destination_gradient},
                                       {DNNL_ARG_WEIGHTS, direction.weights_desc(0)},
                                       {DNNL_ARG_DIFF_SRC, tensors_.source_gradient}});
    source_weight_ = PackedWeight(context_, plain_, direction.weights_desc(0), packed_at_);
  }

  void make_weight_call() {
    const auto& direction = directions_.weight_gradient;
    weight_call_ = call_of(direction, {{DNNL_ARG_SRC, tensors_.source},
                                       {DNNL_ARG_DIFF_DST, tensors_.destination_gradient},
                                       {DNNL_ARG_DIFF_WEIGHTS, direction.diff_weights_desc(0)},
                                       {DNNL_ARG_DIFF_BIAS, tensors_.bias}});
    unpack_ = device::make_reorder(context_, direction.diff_weights_desc(0), plain_gradient_);
  }

  void backward_source(const BackwardCall& call, const void* dy) {
    if (!source_call_) make_source_call();
    source_call_.set(DNNL_ARG_DIFF_DST, dy);
    source_call_.set(DNNL_ARG_WEIGHTS, source_weight_.get(context_, weight_, call));
    source_call_.set(DNNL_ARG_DIFF_SRC, call.input_gradients[0]);
    source_call_.set(DNNL_ARG_SCRATCHPAD, call.workspace);
    source_call_.run(context_);
  }

  // Always computes both gradients: the bits of one must not depend on whether the other is wanted.
  void backward_weight(const BackwardCall& call, const void* dy) {
    if (!weight_call_) make_weight_call();
    auto* packed = static_cast<std::byte*>(call.workspace) + scratch_bytes();
    float* weight = call.parameter_gradients[0];
    float* bias = call.parameter_gradients.size() > 1 ? call.parameter_gradients[1] : nullptr;
    if (bias == nullptr) bias = reinterpret_cast<float*>(packed + packed_gradient_bytes());
    weight_call_.set(DNNL_ARG_SRC, x_.read(call.inputs[0], call.workspace));
    weight_call_.set(DNNL_ARG_DIFF_DST, dy);
    weight_call_.set(DNNL_ARG_DIFF_WEIGHTS, packed);
    weight_call_.set(DNNL_ARG_DIFF_BIAS, bias);
    weight_call_.set(DNNL_ARG_SCRATCHPAD, call.workspace);
    weight_call_.run(context_);
    if (weight == nullptr) return;
    unpack_.set(DNNL_ARG_FROM, packed);
    unpack_.set(DNNL_ARG_TO, weight);
    unpack_.run(context_);
  }

  DnnlContext context_;
  DnnlTensors tensors_;
  DnnlDirections directions_;
  dnnl::memory::desc plain_, plain_gradient_;  // the weight and its gradient in the graph's layout
  bool native_;
  std::size_t copies_;  // bytes of the workspace
  Operand x_, dy_;
  RoundedWeight weight_;
  std::optional<std::size_t> packed_at_;  // offset in the workspace; none: the copy is kept
  DnnlCall forward_call_, source_call_, weight_call_, unpack_;
  PackedWeight forward_weight_, source_weight_;
};

class EmptyLayer final : public Kernel {
 public:
  explicit EmptyLayer(std::vector<TensorSpec> parameters) : parameters_(std::move(parameters)) {}
  void forward(const ForwardCall& /*call*/) override {}
  void backward(const BackwardCall& call) override {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (call.parameter_gradients[i] != nullptr) {
        std::fill_n(call.parameter_gradients[i], parameters_[i].elements(), 0.0F);
      }
    }
  }

 private:
  std::vector<TensorSpec> parameters_;
};

/// Whether oneDNN uses its reference code, for sizes and layouts without better code: plain loops that convert each
/// element separately.
bool is_by_reference(const DnnlDirections& directions) {
  for (const auto* direction : {&directions.forward, &directions.source_gradient, &directions.weight_gradient}) {
    if (*direction && std::string_view(direction->impl_info_str()).starts_with("ref")) return true;
  }
  return false;
}

/// None if oneDNN has only the reference.
std::optional<DnnlDirections> describe_native(const DnnlContext& context, const DnnlTensors& tensors,
                                              const DescribeDnnlLayer& describe) {
  try {
    DnnlDirections directions = describe(context.engine, tensors);
    if (is_by_reference(directions)) return std::nullopt;
    return directions;
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return std::nullopt;
  }
}

/// Whether the layer computes what `make_exact`'s does, or without it oneDNN's own layer in float32. oneDNN 2.6 leaves
/// most of a weight's gradient unwritten for some sizes (of 67 outputs and 8,624 inputs, it unpacks 19), so nothing is
/// believed that was not tried.
bool computes_right(Kernel& native, const KernelRequest& request, const DnnlLayerShape& shape,
                    const DescribeDnnlLayer& describe, const MakeExactLayer& make_exact) {
  const KernelRequest exact = in_float32(request);
  if (make_exact) return agrees({native, request}, {*make_exact(exact), exact});
  const DnnlContext context;
  const DnnlTensors tensors = tensors_of(exact, shape);
  DnnlLayer layer(exact, shape, context, tensors, describe(context.engine, tensors));
  return agrees({native, request}, {layer, exact});
}

/// The same, remembered by the layer's sizes and types.
bool is_believed(Kernel& native, const KernelRequest& request, const DnnlLayerShape& shape,
                 const DescribeDnnlLayer& describe, const MakeExactLayer& make_exact) {
  static std::mutex mutex;
  static std::map<std::string, bool> known;
  std::string key = fmt::format("{} {} {}", request.mode == Mode::training, request.channels_last, native.algorithms());
  for (const auto* const list : {&request.inputs, &request.outputs, &request.parameters}) {
    for (const TensorSpec& spec : *list)
      key += fmt::format(" {} {}", to_string(spec.shape), static_cast<int>(spec.dtype));
  }
  for (const auto* const dims : {&shape.source, &shape.weight, &shape.destination})
    key += fmt::format(" {}", fmt::join(*dims, ","));
  const std::lock_guard lock(mutex);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known[key] = computes_right(native, request, shape, describe, make_exact);
}

}  // namespace

bool multiplies_natively(const KernelRequest& request, dnnl::cpu_isa isa) {
  const auto fits = [](const TensorSpec& spec) { return spec.dtype == DType::f32 || spec.dtype == DType::bf16; };
  return request.compute_type == DType::bf16 && fits(request.inputs[0]) && fits(request.outputs[0]) &&
         device::multiplies_bf16(isa);
}

std::unique_ptr<Kernel> make_dnnl_layer(const KernelRequest& request, const DnnlLayerShape& shape,
                                        const DescribeDnnlLayer& describe, const MakeExactLayer& make_exact) {
  if (request.outputs[0].elements() == 0) return std::make_unique<EmptyLayer>(request.parameters);
  const DnnlContext context;
  const DnnlTensors tensors = tensors_of(request, shape);
  std::optional<DnnlDirections> directions = request.compute_type == DType::f32
                                                 ? describe(context.engine, tensors)
                                                 : describe_native(context, tensors, describe);
  if (!directions) return nullptr;
  auto layer = std::make_unique<DnnlLayer>(request, shape, context, tensors, *std::move(directions));
  if (request.compute_type != DType::f32 && !is_believed(*layer, request, shape, describe, make_exact)) return nullptr;
  return layer;
}

}  // namespace lockstep::ops
