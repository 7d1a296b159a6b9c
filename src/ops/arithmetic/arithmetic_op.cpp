// add and mul: sum and product of two or more tensors of the same shape, from left to right; mul also takes a factor
// for each channel (channel_factors.hpp). sub: a difference. scale: factor * x + shift, for example to scale a
// network's scores before the softmax (the factor's inverse is the temperature of Hinton, Vinyals and Dean, 2015); this
// scales the gradients of earlier layers without changing their learning rate.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/vectorize.hpp"
#include "device/cpu/add.hpp"
#include "lockstep/error.hpp"
#include "ops/arithmetic/channel_factors.hpp"
#include "ops/arithmetic/scale.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/vectors.hpp"

namespace lockstep::ops {

namespace {

Signature infer_of_one_shape(const std::string& op, std::span<const TensorSpec> inputs) {
  for (const TensorSpec& other : inputs.subspan(1)) {
    if (other.shape != inputs[0].shape) {
      throw Error(ExitCode::configuration, fmt::format("{}: expected inputs of one shape, found {} and {}", op,
                                                       to_string(inputs[0].shape), to_string(other.shape)));
    }
  }
  for (const TensorSpec& input : inputs) {
    if (input.dtype != DType::f32) {
      throw Error(ExitCode::configuration,
                  fmt::format("{}: expected inputs of f32, found {}", op, name_of(input.dtype)));
    }
  }
  Signature signature;
  signature.outputs.push_back(inputs[0]);
  return signature;
}

Signature infer_mul(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs) {
  if (are_channel_factors(inputs)) {
    return infer_of_one_shape("mul", std::vector<TensorSpec>{inputs[0], {inputs[1].dtype, inputs[0].shape}});
  }
  const std::vector<TensorSpec> turned(inputs.rbegin(), inputs.rend());
  if (!are_channel_factors(turned)) return infer_of_one_shape("mul", inputs);
  throw Error(ExitCode::configuration,
              fmt::format("mul: expected factors for the channels as second input, found {} and {}; name them behind "
                          "what they are for",
                          to_string(inputs[0].shape), to_string(inputs[1].shape)));
}

Signature infer_scale(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  for (const char* name : {"factor", "shift"}) {
    const double number = attributes.has(name) ? attributes.number(name) : 0;
    const float rounded = number;
    if (std::isfinite(rounded) && (rounded != 0 || number == 0)) continue;
    throw Error(ExitCode::configuration,
                fmt::format("scale: expected a {} that fp32 can hold, found {}", name, number));
  }
  return same_floats("scale", inputs[0]);
}

LOCKSTEP_VECTORIZED void add_relu(const float* a, const float* b, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float sum = a[i] + b[i];
    y[i] = sum <= 0 ? 0 : sum;
  }
}

LOCKSTEP_VECTORIZED void add_relu_gradient(const float* y, const float* dy, float* dx, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = y[i] <= 0 ? 0 : dy[i];
}

LOCKSTEP_VECTORIZED void scale_by(float factor, const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

LOCKSTEP_VECTORIZED void scale_and_shift(float factor, float shift, const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = factor * x[i] + shift;
}

class AddCpu final : public Kernel {
 public:
  explicit AddCpu(const KernelRequest& request)
      : n_(request.outputs[0].elements()), relu_(request.epilogue == "relu") {}

  void forward(const ForwardCall& call) override {
    const std::size_t last = call.inputs.size() - 1;
    const float* sum = input(call, 0);
    for (std::size_t i = 1; i <= last; ++i) {
      (relu_ && i == last ? add_relu : device::add)(sum, input(call, i), output(call), n_);
      sum = output(call);
    }
  }

  void backward(const BackwardCall& call) override {
    if (n_ == 0) return;
    if (relu_) {
      add_relu_gradient(static_cast<const float*>(call.outputs[0]), output_gradient(call), input_gradient(call), n_);
      return;
    }
    for (std::size_t i = 0; i < call.input_gradients.size(); ++i) {
      float* dx = input_gradient(call, i);
      if (dx != nullptr) std::memcpy(dx, output_gradient(call), n_ * sizeof(float));
    }
  }

 private:
  std::int64_t n_;
  bool relu_;
};

LOCKSTEP_VECTORIZED void subtract(const float* a, const float* b, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] - b[i];
}

class SubCpu final : public Kernel {
 public:
  explicit SubCpu(const KernelRequest& request) : n_(request.outputs[0].elements()) {}

  void forward(const ForwardCall& call) override { subtract(input(call, 0), input(call, 1), output(call), n_); }
  void backward(const BackwardCall& call) override {
    if (float* dx = input_gradient(call, 0); dx != nullptr) scale_by(1, output_gradient(call), dx, n_);
    if (float* dx = input_gradient(call, 1); dx != nullptr) scale_by(-1, output_gradient(call), dx, n_);
  }

 private:
  std::int64_t n_;
};

class MulCpu final : public Kernel {
 public:
  explicit MulCpu(const KernelRequest& request) : n_(request.outputs[0].elements()) {}

  void forward(const ForwardCall& call) override {
    multiply(input(call, 0), input(call, 1), output(call), n_);
    for (std::size_t i = 2; i < call.inputs.size(); ++i) multiply(output(call), input(call, i), output(call), n_);
  }

  /// The gradient of an input is dy times the other inputs, from left to right.
  void backward(const BackwardCall& call) override {
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      float* dx = input_gradient(call, i);
      if (dx == nullptr) continue;
      const float* product = output_gradient(call);
      for (std::size_t other = 0; other < call.inputs.size(); ++other) {
        if (other == i) continue;
        multiply(product, input(call, other), dx, n_);
        product = dx;
      }
    }
  }

 private:
  std::int64_t n_;
};

class ScaleCpu final : public Kernel {
 public:
  explicit ScaleCpu(const KernelRequest& request)
      : factor_(request.attributes->number("factor")),
        shift_(shift_of(*request.attributes)),
        n_(request.outputs[0].elements()) {}

  /// A shift of 0 would make 0 of -0.
  void forward(const ForwardCall& call) override {
    if (shift_ == 0) return scale_by(factor_, input(call), output(call), n_);
    scale_and_shift(factor_, shift_, input(call), output(call), n_);
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) != nullptr) scale_by(factor_, output_gradient(call), input_gradient(call), n_);
  }

 private:
  float factor_, shift_;
  std::int64_t n_;
};

/// From left to right, as the kernels compute.
void one_after_the_other(OnnxScope& scope, const std::string& type) {
  const Layout layout = scope.layout();
  std::string value = scope.input(0, layout);
  for (std::size_t i = 1; i < scope.node().inputs.size(); ++i) {
    value = scope.add(type, {value, scope.input(i, layout)});
  }
  scope.result(value, layout);
}

}  // namespace

OpDef make_add() {
  OpDef op;
  op.name = "add";
  op.doc = "the sum of its inputs";
  op.passes_gradient = true;
  op.min_inputs = 2;
  op.max_inputs = -1;
  op.in_place = {.forward = true, .over_gradient = true};
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) { return infer_of_one_shape("add", inputs); };
  op.cost = [](const Attributes&, std::span<const TensorSpec> inputs, const Signature&) {
    const auto n = static_cast<double>(inputs[0].elements()) * (inputs.size() - 1);
    return Cost{n, 0};
  };
  op.kernels[DeviceKind::cpu] = kernel_of<AddCpu>;
  op.epilogues = {{DeviceKind::cpu, {"relu"}}, {DeviceKind::cuda, {"relu"}}};
  return op;
}

OpDef make_sub() {
  OpDef op;
  op.name = "sub";
  op.doc = "its first input minus its second";
  op.min_inputs = op.max_inputs = 2;
  op.in_place = {.forward = true};
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) { return infer_of_one_shape("sub", inputs); };
  op.cost = elementwise_cost<1, 1>;
  op.kernels[DeviceKind::cpu] = kernel_of<SubCpu>;
  return op;
}

OpDef make_mul() {
  OpDef op;
  op.name = "mul";
  op.doc = "elementwise product; a second input [batch, channels] scales channels";
  op.min_inputs = 2;
  op.max_inputs = -1;
  op.backward_reads = {.inputs = true, .outputs = false};
  op.in_place = {.forward = true};
  op.infer = infer_mul;
  op.cost = [](const Attributes&, std::span<const TensorSpec> inputs, const Signature&) {
    const double n = inputs[0].elements(), count = inputs.size();
    return Cost{n * (count - 1), n * count * (count - 1)};
  };
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) -> std::unique_ptr<Kernel> {
    if (are_channel_factors(request.inputs)) return make_channel_factors_cpu(request);
    return std::make_unique<MulCpu>(request);
  };
  return op;
}

OpDef make_scale() {
  OpDef op;
  op.name = "scale";
  op.doc = "multiplies by a constant and adds another";
  op.attributes = {{.name = "factor", .kind = AttributeKind::number, .doc = "the constant"},
                   {.name = "shift", .kind = AttributeKind::number, .doc = "added to the product", .optional = true}};
  op.shorthand = "factor";
  op.in_place = {.forward = true, .over_gradient = true};
  op.infer = infer_scale;
  op.cost = elementwise_cost<2, 1>;
  op.kernels[DeviceKind::cpu] = kernel_of<ScaleCpu>;
  return op;
}

void add_to_onnx(OnnxScope& scope) {
  one_after_the_other(scope, "Add");
}

void sub_to_onnx(OnnxScope& scope) {
  one_after_the_other(scope, "Sub");
}

void mul_to_onnx(OnnxScope& scope) {
  const Shape& x = scope.input_shape();
  const std::vector<TensorSpec> inputs = {scope.input_spec(), scope.input_spec(scope.node().inputs.size() - 1)};
  if (scope.node().inputs.size() != 2 || !are_channel_factors(inputs)) return one_after_the_other(scope, "Mul");
  const Layout layout = scope.layout();
  std::vector<std::int64_t> sizes(x.size(), 1);  // of the factors
  sizes.front() = 0;
  sizes[OnnxScope::axis_in(layout, x.size() - 1, x.size())] = x.back();
  scope.result(scope.add("Mul", {scope.input(0, layout), scope.reshape(scope.input(1), sizes)}), layout);
}

void scale_to_onnx(OnnxScope& scope) {
  const Layout layout = scope.layout();
  const float factor = scope.attributes().number("factor");
  std::string y = scope.add("Mul", {scope.input(0, layout), scope.number(factor)});
  if (const float shift = shift_of(scope.attributes()); shift != 0) y = scope.add("Add", {y, scope.number(shift)});
  scope.result(y, layout);
}

}  // namespace lockstep::ops
