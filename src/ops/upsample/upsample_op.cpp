// upsample: larger images, of the nearest pixels or of those around. The gradient of a pixel is a sum over the outputs
// that it is in, in their order.
#include <fmt/format.h>

#include <memory>

#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/upsample/upsample_sizes.hpp"

namespace lockstep::ops {

namespace {

class UpsampleCpu final : public Kernel {
 public:
  explicit UpsampleCpu(const KernelRequest& request) : sizes_(upsample_sizes(request)) {}

  void forward(const ForwardCall& call) override {
    for (std::int64_t i = 0; i < sizes_.outputs(); ++i) output(call)[i] = upsampled(sizes_, input(call), i);
  }
  void backward(const BackwardCall& call) override {
    float* dx = input_gradient(call);
    for (std::int64_t i = 0; dx != nullptr && i < sizes_.inputs(); ++i) {
      dx[i] = upsampled_gradient(sizes_, output_gradient(call), i);
    }
  }

 private:
  UpsampleSizes sizes_;
};

/// For rows and for columns.
std::pair<std::int64_t, std::int64_t> factors_of(const Attributes& attributes) {
  const auto given = attributes.integers("factor");
  if (given.size() > 2) {
    throw Error(
        ExitCode::configuration,
        fmt::format("upsample: expected a factor, or one for rows and one for columns, found {}", given.size()));
  }
  return {given.front(), given.back()};
}

Signature infer_upsample(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  Signature signature = same_floats("upsample", inputs[0]);
  Shape& shape = signature.outputs[0].shape;
  if (shape.size() != 4) {
    throw Error(ExitCode::configuration,
                fmt::format("upsample: expected images [batch, height, width, channels], found {}", to_string(shape)));
  }
  const auto [rows, columns] = factors_of(attributes);
  shape[1] *= rows;
  shape[2] *= columns;
  return signature;
}

Cost upsample_cost(const Attributes& /*attributes*/, std::span<const TensorSpec> /*inputs*/,
                   const Signature& signature) {
  const double n = signature.outputs[0].elements();
  return {9 * n, 9 * n};
}

}  // namespace

UpsampleSizes upsample_sizes(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  const auto [rows, columns] = factors_of(*request.attributes);
  const bool linear = request.attributes->text("mode") == "bilinear";
  return {shape[0], shape[3], {shape[1], rows, linear}, {shape[2], columns, linear}};
}

OpDef make_upsample() {
  OpDef op;
  op.name = "upsample";
  op.doc = "enlarges images by a whole factor";
  op.attributes = {
      {.name = "factor",
       .kind = AttributeKind::integers,
       .doc = "how many times as large; [rows, columns]",
       .default_value = std::int64_t{2},
       .minimum = 1},
      {.name = "mode",
       .kind = AttributeKind::text,
       .doc = "nearest: repeats pixels; bilinear: interpolates between pixel centers",
       .default_value = std::string("nearest"),
       .choices = {"nearest", "bilinear"}},
  };
  op.shorthand = "factor";
  op.infer = infer_upsample;
  op.cost = upsample_cost;
  op.kernels[DeviceKind::cpu] = kernel_of<UpsampleCpu>;
  return op;
}

void upsample_to_onnx(OnnxScope& scope) {
  const bool linear = scope.attributes().text("mode") == "bilinear";
  const auto factors = scope.attributes().integers("factor");
  const std::string x = scope.input(0, Layout::channels_first);
  const std::string scales =
      scope.constant({1, 1, static_cast<float>(factors.front()), static_cast<float>(factors.back())}, {4});
  std::vector<OnnxAttribute> attributes{{"mode", std::string(linear ? "linear" : "nearest")}};
  if (!linear) attributes.push_back({"nearest_mode", std::string("floor")});
  attributes.push_back({"coordinate_transformation_mode", std::string(linear ? "half_pixel" : "asymmetric")});
  scope.result(scope.add("Resize", {x, "", scales}, std::move(attributes)), Layout::channels_first);
}

}  // namespace lockstep::ops
