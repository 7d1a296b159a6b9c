// conv by oneDNN. Activations stay NHWC (measured on ResNet-20's shapes: as fast as oneDNN's blocked layouts);
// weights are packed into the layout that oneDNN picks, once per version of the parameters and direction.
//
// Forward and backward-data may want different layouts, so each keeps its own packed copy. The weight's gradient
// is made in oneDNN's layout in the workspace and then unpacked.
#include <algorithm>
#include <memory>
#include <optional>

#include "backend/cpu/dnnl_call.hpp"
#include "backend/cpu/dnnl_convolution.hpp"
#include "ops/conv/conv_shape.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

namespace {

using backend::ConvolutionSpec;
using backend::DnnlCall;
using backend::DnnlContext;
using Tag = dnnl::memory::format_tag;
constexpr auto kF32 = dnnl::memory::data_type::f32;

dnnl::memory::desc weights_desc(const ConvShape& s, Tag grouped, Tag dense) {
  const std::int64_t in = s.image.channels / s.groups, h = s.window.height.kernel, w = s.window.width.kernel;
  if (s.groups == 1) return {{s.filters, in, h, w}, kF32, dense};
  return {{s.groups, s.filters / s.groups, in, h, w}, kF32, grouped};
}

ConvolutionSpec spec_of(const ConvShape& s, bool training) {
  const WindowAxis &h = s.window.height, &w = s.window.width;
  ConvolutionSpec spec;
  spec.source = {{s.image.batch, s.image.channels, s.image.height, s.image.width}, kF32, Tag::nhwc};
  spec.destination = {{s.image.batch, s.filters, s.image.out_height, s.image.out_width}, kF32, Tag::nhwc};
  spec.weights = weights_desc(s, Tag::any, Tag::any);
  if (s.bias) spec.bias = {{s.filters}, kF32, Tag::x};
  spec.strides = {h.stride, w.stride};
  spec.dilations = {h.dilation - 1, w.dilation - 1};
  spec.padding_before = {h.before, w.before};
  // What oneDNN needs to make exactly this output: the last rows may lie outside of every window.
  const auto after = [](const WindowAxis& axis, std::int64_t in, std::int64_t out) {
    return (out - 1) * axis.stride + axis.reach() - in - axis.before;
  };
  spec.padding_after = {after(h, s.image.height, s.image.out_height), after(w, s.image.width, s.image.out_width)};
  spec.training = training;
  return spec;
}

/// A copy of the weight in oneDNN's layout, renewed when the parameters change.
class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(const DnnlContext& context, const dnnl::memory::desc& plain, const dnnl::memory::desc& packed)
      : reorder_(backend::make_reorder(context, plain, packed)), bytes_(packed.get_size()) {}

  const void* get(const DnnlContext& context, const void* weights, std::uint64_t version) {
    if (version_ != version) {
      reorder_.set(DNNL_ARG_FROM, weights);
      reorder_.set(DNNL_ARG_TO, bytes_.data());
      reorder_.run(context);
      version_ = version;
    }
    return bytes_.data();
  }

 private:
  DnnlCall reorder_;
  AlignedBytes bytes_;
  std::optional<std::uint64_t> version_;
};

class ConvCpu final : public Kernel {
 public:
  ConvCpu(const ConvShape& shape, Mode mode)
      : plain_(weights_desc(shape, Tag::goihw, Tag::oihw)),
        spec_(spec_of(shape, mode == Mode::training)),
        forward_(backend::describe_forward(context_.engine, spec_)) {
    forward_call_ = DnnlCall(context_, dnnl::convolution_forward(forward_),
                             {{DNNL_ARG_SRC, spec_.source},
                              {DNNL_ARG_WEIGHTS, forward_.weights_desc()},
                              {DNNL_ARG_BIAS, spec_.bias},
                              {DNNL_ARG_DST, spec_.destination},
                              {DNNL_ARG_SCRATCHPAD, forward_.scratchpad_desc()}});
    forward_weights_ = PackedWeights(context_, plain_, forward_.weights_desc());
    scratch_bytes_ = forward_.scratchpad_desc().get_size();
    if (mode == Mode::training) describe_backward();
  }

  [[nodiscard]] std::size_t workspace_bytes() const override {
    return rounded(scratch_bytes_) + rounded(weight_gradient_bytes_) + spec_.bias.get_size();
  }

  void forward(const ForwardCall& call) override {
    forward_call_.set(DNNL_ARG_SRC, call.inputs[0]);
    forward_call_.set(DNNL_ARG_WEIGHTS,
                      forward_weights_.get(context_, call.parameters[0], call.step->parameters_version));
    if (call.parameters.size() > 1) forward_call_.set(DNNL_ARG_BIAS, call.parameters[1]);
    forward_call_.set(DNNL_ARG_DST, call.outputs[0]);
    forward_call_.set(DNNL_ARG_SCRATCHPAD, call.workspace);
    forward_call_.run(context_);
  }

  void backward(const BackwardCall& call) override {
    if (call.input_gradients[0] != nullptr) backward_data(call);
    const auto& wanted = call.parameter_gradients;
    if (std::any_of(wanted.begin(), wanted.end(), [](const float* p) { return p != nullptr; })) backward_weights(call);
  }

 private:
  static std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  void describe_backward() {
    data_ = backend::describe_backward_data(context_.engine, spec_, forward_);
    weights_ = backend::describe_backward_weights(context_.engine, spec_, forward_);
    scratch_bytes_ =
        std::max({scratch_bytes_, data_.scratchpad_desc().get_size(), weights_.scratchpad_desc().get_size()});
    weight_gradient_bytes_ = weights_.diff_weights_desc().get_size();
  }

  // The code of each direction is generated when it first runs: the first layer's input needs no gradient.
  void make_data_call() {
    data_call_ = DnnlCall(context_, dnnl::convolution_backward_data(data_),
                          {{DNNL_ARG_DIFF_DST, spec_.destination},
                           {DNNL_ARG_WEIGHTS, data_.weights_desc()},
                           {DNNL_ARG_DIFF_SRC, spec_.source},
                           {DNNL_ARG_SCRATCHPAD, data_.scratchpad_desc()}});
    data_weights_ = PackedWeights(context_, plain_, data_.weights_desc());
  }

  void make_weights_call() {
    weights_call_ = DnnlCall(context_, dnnl::convolution_backward_weights(weights_),
                             {{DNNL_ARG_SRC, spec_.source},
                              {DNNL_ARG_DIFF_DST, spec_.destination},
                              {DNNL_ARG_DIFF_WEIGHTS, weights_.diff_weights_desc()},
                              {DNNL_ARG_DIFF_BIAS, spec_.bias},
                              {DNNL_ARG_SCRATCHPAD, weights_.scratchpad_desc()}});
    unpack_ = backend::make_reorder(context_, weights_.diff_weights_desc(), plain_);
  }

  void backward_data(const BackwardCall& call) {
    if (!data_call_) make_data_call();
    data_call_.set(DNNL_ARG_DIFF_DST, call.output_gradients[0]);
    data_call_.set(DNNL_ARG_WEIGHTS, data_weights_.get(context_, call.parameters[0], call.step->parameters_version));
    data_call_.set(DNNL_ARG_DIFF_SRC, call.input_gradients[0]);
    data_call_.set(DNNL_ARG_SCRATCHPAD, call.workspace);
    data_call_.run(context_);
  }

  // Always both gradients: the bits of one must not depend on whether the other is wanted.
  void backward_weights(const BackwardCall& call) {
    if (!weights_call_) make_weights_call();
    auto* packed = static_cast<std::byte*>(call.workspace) + rounded(scratch_bytes_);
    float* weight = call.parameter_gradients[0];
    float* bias = call.parameter_gradients.size() > 1 ? call.parameter_gradients[1] : nullptr;
    if (bias == nullptr) bias = reinterpret_cast<float*>(packed + rounded(weight_gradient_bytes_));
    weights_call_.set(DNNL_ARG_SRC, call.inputs[0]);
    weights_call_.set(DNNL_ARG_DIFF_DST, call.output_gradients[0]);
    weights_call_.set(DNNL_ARG_DIFF_WEIGHTS, packed);
    weights_call_.set(DNNL_ARG_DIFF_BIAS, bias);
    weights_call_.set(DNNL_ARG_SCRATCHPAD, call.workspace);
    weights_call_.run(context_);
    if (weight == nullptr) return;
    unpack_.set(DNNL_ARG_FROM, packed);
    unpack_.set(DNNL_ARG_TO, weight);
    unpack_.run(context_);
  }

  DnnlContext context_;
  dnnl::memory::desc plain_;  // the weight as the graph has it
  ConvolutionSpec spec_;
  backend::ConvolutionForward forward_;
  backend::ConvolutionBackwardData data_;
  backend::ConvolutionBackwardWeights weights_;
  std::size_t scratch_bytes_ = 0, weight_gradient_bytes_ = 0;
  DnnlCall forward_call_, data_call_, weights_call_, unpack_;
  PackedWeights forward_weights_, data_weights_;
};

/// A batch of nothing: gradients of 0.
class EmptyConvCpu final : public Kernel {
 public:
  explicit EmptyConvCpu(std::vector<TensorSpec> parameters) : parameters_(std::move(parameters)) {}
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

}  // namespace

std::unique_ptr<Kernel> make_conv_cpu(const KernelRequest& request) {
  if (request.outputs[0].elements() == 0) return std::make_unique<EmptyConvCpu>(request.parameters);
  return std::make_unique<ConvCpu>(conv_shape(*request.attributes, request.inputs[0]), request.mode);
}

}  // namespace lockstep::ops
