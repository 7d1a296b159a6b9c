// conv by cuDNN, with a plan for each direction; without a plan, and for the bias's gradient, by Grid kernels. The
// workspace holds the weight, or its gradient, with channels last if that is not its layout, then fp32 copies of the
// factors if they are needed, and then cuDNN's own workspace.
//
// For low-precision factors whose channels or filters are no multiple of 8 (images have 1 or 3 channels), cuDNN has no
// plan for a weight gradient in fp32, or wrong ones. It then gets them upcast, and may use its TF32 tensor cores, which
// loses nothing: every bfloat16 and float16 is a TF32 number.
//
// Each plan is tried before it is used (library_trial.cuh); where one is wrong, the next that cuDNN proposes is taken.
//
// An epilogue relu is part of the output's plan if cuDNN has such a plan, as its name then says; else one of our
// kernels is applied to the output.
#include <algorithm>

#include "device/cuda/cuda_grid.cuh"
#include "device/cuda/cudnn_convolution.hpp"
#include "device/cuda/library_trial.cuh"
#include "device/layer_algorithms.hpp"
#include "ops/conv/conv_grid.hpp"
#include "ops/conv/conv_layout.hpp"

namespace lockstep::ops {

namespace {

using device::CudaGrid;
using device::CudnnConvolution;
using Direction = CudnnConvolution::Direction;

// Suffixes of the names of such algorithms.
constexpr const char *kUpcast = " of upcast factors", *kRelu = ", relu";

/// Removes a suffix from a plan's name, if it is there.
bool cut(std::string_view end, std::string& name) {
  if (!name.ends_with(end)) return false;
  name.resize(name.size() - end.size());
  return true;
}

class CudnnConv final : public LayerProducts {
 public:
  CudnnConv(const KernelRequest& request, const ConvShape& shape, std::unique_ptr<LayerProducts> own)
      : own_(std::move(own)),
        shape_(shape),
        compute_type_(request.compute_type),
        inputs_(request.inputs[0].elements()),
        outputs_(request.outputs[0].elements()),
        weights_(request.parameters[0].elements()),
        output_type_(request.outputs[0].dtype),
        filter_(filter_of(shape)) {
    const auto wanted = device::LayerAlgorithms::of(request.gpu->algorithms);
    choose_output(request, wanted.output);
    if (request.mode != Mode::training) return;
    choose_image_gradient(request, wanted.input_gradient);
    choose_weight_gradient(request, wanted.weight_gradient);
  }

  std::size_t workspace_bytes() const override {
    std::size_t bytes = 0;
    for (const auto* direction : {&output_, &image_gradient_, &weight_gradient_}) {
      if (*direction) bytes = std::max(bytes, (*direction)->workspace_bytes());
    }
    return std::max(packed_bytes() + wide_bytes(inputs_) + wide_bytes(outputs_) + bytes, own_->workspace_bytes());
  }

  std::string algorithms() const override {
    const auto name = [](const std::optional<CudnnConvolution>& direction) {
      return direction ? direction->name() : std::string(device::kOwnKernel);
    };
    const std::string of_output = name(output_) + std::string(output_ && relu_ == ReluStep::in_plan ? kRelu : "");
    const std::string of_weight = name(weight_gradient_) + std::string(upcasts_ ? kUpcast : "");
    return device::LayerAlgorithms{of_output, name(image_gradient_), of_weight}.text();
  }

  void output(const ProductCall& call, const void* x, const void* weight, const float* bias, void* y) override {
    if (!output_) return own_->output(call, x, weight, bias, y);
    output_->run(*call.stream, {x, packed_weight(call, weight), bias, y}, rest(call));
    if (relu_ == ReluStep::after) relu(call, y);
  }

  void input_gradient(const ProductCall& call, const void* dy, const void* weight, void* dx) override {
    if (!image_gradient_) return own_->input_gradient(call, dy, weight, dx);
    image_gradient_->run(*call.stream, {dy, packed_weight(call, weight), nullptr, dx}, rest(call));
  }

  void weight_gradient(const ProductCall& call, const void* x, const void* dy, float* dw) override {
    if (!weight_gradient_) return own_->weight_gradient(call, x, dy, dw);
    float* packed = is_packed() ? dw : static_cast<float*>(call.workspace);
    std::byte* const wide = static_cast<std::byte*>(call.workspace) + packed_bytes();
    const CudnnConvolution::Operands operands{upcast(call, dy, outputs_, wide),
                                              upcast(call, x, inputs_, wide + wide_bytes(outputs_)), nullptr, packed};
    weight_gradient_->run(*call.stream, operands, rest(call));
    if (packed != dw) CudaGrid::each(call.stream, weights_, ChannelsFirstFunctor{packed, dw, filter_});
  }

  void bias_gradient(const ProductCall& call, const void* dy, float* db) override { own_->bias_gradient(call, dy, db); }

 private:
  using Plan = std::optional<CudnnConvolution>;

  void choose_output(const KernelRequest& request, std::string name) {
    const bool wanted_with_relu = cut(kRelu, name), relu = request.epilogue == "relu";
    if (relu && (name.empty() || wanted_with_relu)) {
      relu_ = ReluStep::in_plan;
      try_plans(request, {Direction::output, compute_type_, output_type_, true}, name, output_);
    }
    if (output_ || wanted_with_relu) return;
    relu_ = relu ? ReluStep::after : ReluStep::none;
    try_plans(request, {Direction::output, compute_type_, output_type_}, name, output_);
  }
  void choose_image_gradient(const KernelRequest& request, const std::string& name) {
    try_plans(request, {Direction::image_gradient, compute_type_, request.inputs[0].dtype}, name, image_gradient_);
  }
  void choose_weight_gradient(const KernelRequest& request, std::string name) {
    const bool wanted_wide = cut(kUpcast, name);
    if (!wanted_wide) {
      try_plans(request, {Direction::weight_gradient, compute_type_, DType::f32}, name, weight_gradient_);
    }
    if (weight_gradient_ || !is_low_precision(compute_type_) || !(name.empty() || wanted_wide)) return;
    upcasts_ = true;
    try_plans(request, {Direction::weight_gradient, DType::f32, DType::f32}, name, weight_gradient_);
    upcasts_ = weight_gradient_.has_value();
  }

  struct Product {
    Direction direction;
    DType factors, result;
    bool relu = false;
  };
  /// Sets `plan`, one of the members, to the first plan of cuDNN's that is right.
  void try_plans(const KernelRequest& request, const Product& product, const std::string& name, Plan& plan) {
    const bool bias = shape_.bias && product.direction == Direction::output,
               tf32 = request.gpu->tf32 || is_low_precision(compute_type_);
    std::vector<std::string> wrong;
    for (;;) {
      plan = CudnnConvolution::make(request.gpu->stream->cudnn_target(), request.gpu->stream->place(),
                                    {product.direction, bias, {product.factors, product.result, tf32}, product.relu},
                                    convolution_layout(shape_), {request.node, name}, wrong);
      if (!plan || plan->plan().is_right([&] { return agrees(request.gpu->stream, product); })) return;
      wrong.push_back(plan->name());
    }
  }
  /// Whether what the product's plan computes has the bits of our own kernel.
  bool agrees(GpuStream* stream, const Product& product) {
    device::LibraryTrial trial(stream);
    const ProductCall call{stream, trial.memory(workspace_bytes())};
    if (product.direction == Direction::weight_gradient) {
      const void* const x = trial.integers(compute_type_, inputs_);
      const void* const dy = trial.integers(compute_type_, outputs_);
      return trial.agree(
          DType::f32, weights_, [&](void* dw) { CudnnConv::weight_gradient(call, x, dy, static_cast<float*>(dw)); },
          [&](void* dw) { own_->weight_gradient(call, x, dy, static_cast<float*>(dw)); });
    }
    const void* const weight = trial.integers(compute_type_, weights_);
    if (product.direction == Direction::image_gradient) {
      const void* const dy = trial.integers(compute_type_, outputs_);
      return trial.agree(
          product.result, inputs_, [&](void* dx) { CudnnConv::input_gradient(call, dy, weight, dx); },
          [&](void* dx) { own_->input_gradient(call, dy, weight, dx); });
    }
    const void* const x = trial.integers(compute_type_, inputs_);
    const auto* const bias =
        shape_.bias ? static_cast<const float*>(trial.integers(DType::f32, shape_.filters)) : nullptr;
    return trial.agree(
        output_type_, outputs_, [&](void* y) { CudnnConv::output(call, x, weight, bias, y); },
        [&](void* y) {
          own_->output(call, x, weight, bias, y);
          if (relu_ != ReluStep::none) relu(call, y);
        });
  }

  void relu(const ProductCall& call, void* y) const {
    device::with_element(output_type_, [&]<class T>(T /*element*/) {
      CudaGrid::each(call.stream, outputs_, MapFunctor<Relu, T>{static_cast<T*>(y), static_cast<T*>(y)});
    });
  }

  bool is_packed() const { return weight_needs_no_copy(shape_); }
  /// For the gradient, which is in fp32; the weight needs as much, or half.
  std::size_t packed_bytes() const {
    return is_packed() ? 0 : aligned_for_libraries(static_cast<std::size_t>(weights_) * sizeof(float));
  }
  void* rest(const ProductCall& call) const {
    return static_cast<std::byte*>(call.workspace) + packed_bytes() + wide_bytes(inputs_) + wide_bytes(outputs_);
  }
  /// Size of a copy in fp32.
  std::size_t wide_bytes(std::int64_t elements) const {
    return upcasts_ ? aligned_for_libraries(static_cast<std::size_t>(elements) * sizeof(float)) : 0;
  }
  const void* upcast(const ProductCall& call, const void* factor, std::int64_t elements, std::byte* to) const {
    if (!upcasts_) return factor;
    device::launch_cast<CudaGrid>(call.stream, device::Cast::upcast, compute_type_, factor, to, elements);
    return to;
  }

  const void* packed_weight(const ProductCall& call, const void* weight) const {
    if (is_packed()) return weight;
    device::with_element(compute_type_, [&]<class T>(T /*element*/) {
      CudaGrid::each(call.stream, weights_,
                     ChannelsLastFunctor<T>{static_cast<const T*>(weight), static_cast<T*>(call.workspace), filter_});
    });
    return call.workspace;
  }

  std::unique_ptr<LayerProducts> own_;
  ConvShape shape_;
  DType compute_type_;
  std::int64_t inputs_, outputs_, weights_;  ///< numbers of elements
  DType output_type_;
  FilterSizes filter_;
  enum class ReluStep : std::uint8_t { none, in_plan, after } relu_ = ReluStep::none;  ///< the relu of the output
  Plan output_, image_gradient_, weight_gradient_;
  bool upcasts_ = false;  ///< whether the factors of the weight's gradient are upcast
};

}  // namespace

std::unique_ptr<Kernel> make_conv_cuda(const KernelRequest& request) {
  auto products = make_conv_products<CudaGrid>(request);
  if (products != nullptr && request.gpu != nullptr && request.outputs[0].elements() > 0) {
    ConvShape shape = conv_shape(*request.attributes, request.inputs[0]);
    shape.channels_last = request.channels_last;
    products = std::make_unique<CudnnConv>(request, shape, std::move(products));
  }
  return make_conv_layer<CudaGrid>(request, std::move(products));
}

}  // namespace lockstep::ops
