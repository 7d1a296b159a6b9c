#include "ops/per_sample.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::ops {

Signature per_sample_signature(std::int64_t batch) {
  Signature signature;
  signature.outputs = {{DType::f32, {batch}}, {DType::f32, {batch}}};
  return signature;
}

Signature classes_signature(const std::string& op, std::span<const TensorSpec> inputs) {
  const TensorSpec &prediction = inputs[0], &target = inputs[1];
  if (prediction.dtype != DType::f32 || prediction.shape.size() < 2 || prediction.shape.back() < 1) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected a prediction [batch, ..., classes] of f32, found {} of {}", op,
                            to_string(prediction.shape), name_of(prediction.dtype)));
  }
  const Shape labels(prediction.shape.begin(), prediction.shape.end() - 1);
  const bool hard = target.dtype == DType::i32 && target.shape == labels;
  const bool soft = target.dtype == DType::f32 && target.shape == prediction.shape;
  if (!hard && !soft) {
    const bool a_class_a_sample = target.dtype == DType::i32 && target.shape.size() == 1 && labels.size() > 1;
    throw Error(ExitCode::configuration,
                fmt::format("{}: for a prediction {} expected a target {} of i32 or {} of f32, found {} of {}{}", op,
                            to_string(prediction.shape), to_string(labels), to_string(prediction.shape),
                            to_string(target.shape), name_of(target.dtype),
                            a_class_a_sample ? "; for one class a sample put `flatten: {}` or `global_pool: {}` "
                                               "before the last linear layer"
                                             : ""));
  }
  return per_sample_signature(prediction.shape[0]);
}

ClassRows::ClassRows(const KernelRequest& request) : soft(request.inputs[1].dtype == DType::f32) {
  const Shape& shape = request.inputs[0].shape;
  batch = shape.front();
  classes = shape.back();
  for (std::size_t i = 1; i + 1 < shape.size(); ++i) per_sample *= shape[i];
  ignores = request.attributes != nullptr && request.attributes->has("ignored_index");
  if (ignores) ignored_index = request.attributes->integer("ignored_index");
}

std::int32_t ClassRows::label(const void* target, std::int64_t row) const {
  const std::int32_t label = static_cast<const std::int32_t*>(target)[row];
  if (label < 0 || label >= classes) {
    throw Error(ExitCode::data,
                fmt::format("a label is {}, but the model predicts classes 0 to {}; the model's last layer needs "
                            "as many features as the data set has classes",
                            label, classes - 1));
  }
  return label;
}

std::int64_t ClassRows::best_class(const float* values) const {
  std::int64_t best = 0;
  for (std::int64_t k = 1; k < classes; ++k) best = values[k] > values[best] ? k : best;
  return best;
}

std::int64_t ClassRows::target_class(const void* target, std::int64_t row) const {
  return soft ? best_class(static_cast<const float*>(target) + row * classes) : label(target, row);
}

OpDef metric_of_classes(const std::string& name, const std::string& doc) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.kind = OpKind::metric;
  op.targets = TargetKind::classes;
  op.attributes = {ignored_index_attribute()};
  op.min_inputs = op.max_inputs = 2;
  op.differentiable = false;
  op.constant_inputs = {0, 1};
  op.infer = [name](const Attributes&, std::span<const TensorSpec> inputs) { return classes_signature(name, inputs); };
  return op;
}

AttributeSpec ignored_index_attribute() {
  return {.name = "ignored_index",
          .kind = AttributeKind::integer,
          .doc = "a label that does not count",
          .optional = true,
          .minimum = -2147483648.0,
          .maximum = 2147483647.0};
}

AttributeSpec focal_attribute() {
  return {.name = "focal",
          .kind = AttributeKind::number,
          .doc = "gamma of the focal loss: terms are multiplied by (1 - p)^gamma",
          .optional = true,
          .minimum = 0};
}

double focal_of(const Attributes& attributes) {
  return attributes.has("focal") ? attributes.number("focal") : 0;
}

}  // namespace lockstep::ops
