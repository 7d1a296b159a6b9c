// class_token: y[b] = [weight; x[b]], a learned token before those of each sample; weight [1, width], x [batch, time,
// width], y [batch, time + 1, width]. What attention gathers in it is classified (Devlin et al., 2019; Dosovitskiy et
// al., 2021).
//
// The weight's gradient adds sample after sample.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "device/cpu/add.hpp"
#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

namespace {

class ClassTokenCpu final : public Kernel {
 public:
  explicit ClassTokenCpu(const KernelRequest& request) {
    const Shape& x = request.inputs[0].shape;
    batch_ = x[0];
    width_ = x[2];
    tokens_ = x[1] * x[2];
  }

  void forward(const ForwardCall& call) override {
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    for (std::int64_t b = 0; b < batch_; ++b) {
      float* const y = output(call) + b * (width_ + tokens_);
      std::copy_n(weight, width_, y);
      std::copy_n(input(call) + b * tokens_, tokens_, y + width_);
    }
  }

  void backward(const BackwardCall& call) override {
    const float* const dy = output_gradient(call);
    float *const dx = input_gradient(call), *const dw = call.parameter_gradients[0];
    if (dw != nullptr) std::fill_n(dw, width_, 0.0F);
    for (std::int64_t b = 0; b < batch_; ++b) {
      const float* const sample = dy + b * (width_ + tokens_);
      if (dx != nullptr) std::copy_n(sample + width_, tokens_, dx + b * tokens_);
      if (dw != nullptr) device::add(dw, sample, dw, width_);
    }
  }

 private:
  std::int64_t batch_, width_, tokens_;  ///< samples, elements of a token, elements of a sample's tokens
};

Signature infer_class_token(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const TensorSpec& x = inputs[0];
  if (x.dtype != DType::f32 || x.shape.size() != 3) {
    throw Error(ExitCode::configuration,
                fmt::format("class_token: expected an input [batch, time, width] of f32, found {} of {}",
                            to_string(x.shape), name_of(x.dtype)));
  }
  Signature signature = same_shape(attributes, inputs);
  ++signature.outputs[0].shape[1];
  signature.parameters.push_back({"weight", {1, x.shape[2]}, Initializer::normal(attributes.number("std"))});
  return signature;
}

}  // namespace

OpDef make_class_token() {
  OpDef op;
  op.name = "class_token";
  op.doc = "a learned token before the others, for classification";
  op.attributes = {{.name = "std",
                    .kind = AttributeKind::number,
                    .doc = "standard deviation of the first values",
                    .default_value = 0.02,
                    .minimum = 0}};
  op.infer = infer_class_token;
  op.cost = elementwise_cost<1, 1>;
  op.kernels[DeviceKind::cpu] = kernel_of<ClassTokenCpu>;
  return op;
}

void class_token_to_onnx(OnnxScope& scope) {
  const std::string x = scope.input();
  // The batch has any size: the token is added to zeros of the size of the samples' first tokens.
  const std::vector<std::string> first{x, scope.integers({0}), scope.integers({1}), scope.integers({1})};
  const std::string zeros = scope.add("Mul", {scope.add("Slice", first), scope.number(0)});
  const std::string token = scope.add("Add", {zeros, scope.parameter(0)});
  scope.result(scope.add("Concat", {token, x}, {{"axis", std::int64_t{1}}}));
}

}  // namespace lockstep::ops
