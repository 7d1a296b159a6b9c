// pad and its kernel for CPUs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/pad/pad_sizes.hpp"
#include "ops/window.hpp"

namespace lockstep::ops {

namespace {

class PadCpu final : public Kernel {
 public:
  explicit PadCpu(const KernelRequest& request) : sizes_(pad_sizes(request)) {}

  void forward(const ForwardCall& call) override {
    for (std::int64_t i = 0; i < sizes_.outputs(); ++i) output(call)[i] = padded(sizes_, input(call), i);
  }
  void backward(const BackwardCall& call) override {
    float* dx = input_gradient(call);
    for (std::int64_t i = 0; dx != nullptr && i < sizes_.inputs(); ++i) {
      dx[i] = padded_gradient(sizes_, output_gradient(call), i);
    }
  }

 private:
  PadSizes sizes_;
};

/// Throws Error(configuration) unless there are so many pixels to mirror.
void require_pixels_to_mirror(const char* what, const PadAxis& axis) {
  const std::int64_t most = std::max(axis.before, axis.after);
  if (most < axis.size) return;
  throw Error(ExitCode::configuration,
              fmt::format("pad: expected fewer {} to mirror than the image has, {}, found {}; take mode zero, or less",
                          what, axis.size, most));
}

PadSizes sizes_of(const Attributes& attributes, const TensorSpec& image) {
  require_image("pad", image);
  auto sides = attributes.integers("sides");
  if (sides.size() == 1) sides = {sides[0], sides[0]};
  if (sides.size() == 2) sides = {sides[0], sides[0], sides[1], sides[1]};
  if (sides.size() != 4) {
    throw Error(ExitCode::configuration,
                fmt::format("pad: sides: expected one integer, [rows, columns] or [top, bottom, left, right], found {} "
                            "integers",
                            sides.size()));
  }
  const Shape& x = image.shape;
  const PadSizes sizes{.batch = x[0],
                       .channels = x[3],
                       .rows = {x[1], sides[0], sides[1]},
                       .columns = {x[2], sides[2], sides[3]},
                       .reflect = attributes.text("mode") == "reflect"};
  if (sizes.reflect) {
    require_pixels_to_mirror("rows", sizes.rows);
    require_pixels_to_mirror("columns", sizes.columns);
  }
  return sizes;
}

Signature infer_pad(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const PadSizes sizes = sizes_of(attributes, inputs[0]);
  Signature signature = same_shape(attributes, inputs);
  signature.outputs[0].shape[1] = sizes.rows.outputs();
  signature.outputs[0].shape[2] = sizes.columns.outputs();
  return signature;
}

}  // namespace

PadSizes pad_sizes(const KernelRequest& request) {
  return sizes_of(*request.attributes, request.inputs[0]);
}

OpDef make_pad() {
  OpDef op;
  op.name = "pad";
  op.doc = "pads images";
  op.attributes = {
      {.name = "sides",
       .kind = AttributeKind::integers,
       .doc = "pixels: one integer, [rows, columns] or [top, bottom, left, right]",
       .minimum = 0},
      {.name = "mode",
       .kind = AttributeKind::text,
       .doc = "zero; reflect: the image mirrored at its border pixels",
       .default_value = std::string("zero"),
       .choices = {"zero", "reflect"}},
  };
  op.shorthand = "sides";
  op.infer = infer_pad;
  op.cost = [](const Attributes&, std::span<const TensorSpec>, const Signature&) { return Cost{}; };
  op.kernels[DeviceKind::cpu] = kernel_of<PadCpu>;
  return op;
}

void pad_to_onnx(OnnxScope& scope) {
  auto sides = scope.attributes().integers("sides");
  if (sides.size() == 1) sides = {sides[0], sides[0]};
  if (sides.size() == 2) sides = {sides[0], sides[0], sides[1], sides[1]};
  const bool reflect = scope.attributes().text("mode") == "reflect";
  const Layout layout = scope.layout();
  const std::int64_t row = OnnxScope::axis_in(layout, 1, 4), column = OnnxScope::axis_in(layout, 2, 4);
  std::vector<std::int64_t> pads(8, 0);  // before each dimension, then behind each
  pads[row] = sides[0];
  pads[row + 4] = sides[1];
  pads[column] = sides[2];
  pads[column + 4] = sides[3];
  const std::string mode = reflect ? "reflect" : "constant";
  const std::string x = scope.input(0, layout);
  scope.result(scope.add("Pad", {x, scope.integers(std::move(pads))}, {{"mode", mode}}), layout);
}

}  // namespace lockstep::ops
