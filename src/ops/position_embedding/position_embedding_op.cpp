// position_embedding: y[b, t] = x[b, t] + weight[t]; weight [length, width]. With `same` all positions have weight[0]:
// token types of texts that have one type.
//
// The weight's gradient adds sample after sample (with `same` token after token).
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "device/cpu/add.hpp"
#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/position_embedding/position_rows.hpp"

namespace lockstep::ops {

namespace {

class PositionEmbeddingCpu final : public Kernel {
 public:
  PositionEmbeddingCpu(std::int64_t batch, std::int64_t used, std::int64_t size)
      : batch_(batch), used_(used), size_(size) {}

  void forward(const ForwardCall& call) override {
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    for (std::int64_t b = 0; b < batch_; ++b)
      device::add(input(call) + b * used_, weight, output(call) + b * used_, used_);
  }

  void backward(const BackwardCall& call) override {
    const float* dy = output_gradient(call);
    if (input_gradient(call) != nullptr) std::copy_n(dy, batch_ * used_, input_gradient(call));
    float* dw = call.parameter_gradients[0];
    if (dw == nullptr) return;
    std::fill_n(dw, size_, 0.0F);
    for (std::int64_t b = 0; b < batch_; ++b) device::add(dw, dy + b * used_, dw, used_);
  }

 private:
  std::int64_t batch_, used_, size_;  ///< elements per sample, and of the weight
};

std::unique_ptr<Kernel> make_position_embedding_cpu(const KernelRequest& request) {
  const PositionRows rows = position_rows(request);
  return std::make_unique<PositionEmbeddingCpu>(rows.count, rows.used, request.parameters[0].elements());
}

Signature infer_position_embedding(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const TensorSpec& x = inputs[0];
  if (x.dtype != DType::f32 || x.shape.size() != 3) {
    throw Error(ExitCode::configuration,
                fmt::format("position_embedding: expected an input [batch, time, width] of f32, found {} of {}",
                            to_string(x.shape), name_of(x.dtype)));
  }
  const bool same = attributes.has("same") && attributes.boolean("same");
  const std::int64_t length = attributes.has("length") ? attributes.integer("length") : same ? 1 : x.shape[1];
  if (!same && x.shape[1] > length) {
    throw Error(
        ExitCode::configuration,
        fmt::format("position_embedding: expected at most {} positions, found {}; raise `length`", length, x.shape[1]));
  }
  Signature signature = same_shape(attributes, inputs);
  signature.parameters.push_back({"weight", {length, x.shape[2]}, Initializer::normal(attributes.number("std"))});
  return signature;
}

}  // namespace

PositionRows position_rows(const KernelRequest& request) {
  const Shape& x = request.inputs[0].shape;
  const Attributes& attributes = *request.attributes;
  const bool same = attributes.has("same") && attributes.boolean("same");
  return same ? PositionRows{x[0] * x[1], x[2]} : PositionRows{x[0], x[1] * x[2]};
}

OpDef make_position_embedding() {
  OpDef op;
  op.name = "position_embedding";
  op.doc = "adds a learned vector for each position";
  op.attributes = {{.name = "length",
                    .kind = AttributeKind::integer,
                    .doc = "most positions of a sample; default: the input's",
                    .optional = true,
                    .minimum = 1},
                   {.name = "std",
                    .kind = AttributeKind::number,
                    .doc = "standard deviation of the first values",
                    .default_value = 0.02,
                    .minimum = 0},
                   {.name = "same",
                    .kind = AttributeKind::boolean,
                    .doc = "all positions get the first vector; length: 1 then",
                    .optional = true}};
  op.shorthand = "length";
  op.infer = infer_position_embedding;
  op.cost = elementwise_cost<1, 1>;
  op.kernels[DeviceKind::cpu] = make_position_embedding_cpu;
  return op;
}

void position_embedding_to_onnx(OnnxScope& scope) {
  const bool same = scope.attributes().has("same") && scope.attributes().boolean("same");
  const std::int64_t positions = same ? 1 : scope.input_shape()[1], width = scope.input_shape()[2];
  const bool all = scope.parameter_values(0).size() == static_cast<std::size_t>(positions * width);
  const std::string x = scope.input();
  if (all) return scope.result(scope.add("Add", {x, scope.parameter(0)}));
  const std::vector<std::string> first{scope.parameter(0), scope.integers({0}), scope.integers({positions}),
                                       scope.integers({0})};
  scope.result(scope.add("Add", {x, scope.add("Slice", first)}));
}

}  // namespace lockstep::ops
