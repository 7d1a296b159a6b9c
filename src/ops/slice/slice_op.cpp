// slice: a part of one dimension, which is not the batch. Several of them split a tensor; concat is the way back.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "lockstep/error.hpp"
#include "ops/axis.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/slice/slice_run.hpp"

namespace lockstep::ops {

namespace {

/// The dimension and the elements of it that are kept, counted from its beginning.
struct SlicePart {
  std::size_t axis = 0;
  std::int64_t begin = 0, end = 0;
};

/// Negative numbers count from the end, as in Python. Throws Error(configuration) for a part that is not there.
SlicePart slice_part(const Attributes& attributes, const Shape& shape) {
  const std::size_t axis = axis_of("slice", attributes, shape);
  const std::int64_t size = shape[axis];
  const auto from_begin = [size](std::int64_t number) { return number < 0 ? number + size : number; };
  const SlicePart part{axis, from_begin(attributes.integer("begin")),
                       attributes.has("end") ? from_begin(attributes.integer("end")) : size};
  if (part.begin < 0 || part.begin >= part.end || part.end > size) {
    throw Error(ExitCode::configuration,
                fmt::format("slice: expected a part of the {} elements of dimension {} of {}, found {} to {}", size,
                            axis, to_string(shape), part.begin, part.end));
  }
  return part;
}

class SliceCpu final : public Kernel {
 public:
  explicit SliceCpu(const KernelRequest& request) : run_(slice_run(request)) {}

  void forward(const ForwardCall& call) override {
    for (std::int64_t o = 0; o < run_.outer; ++o) {
      std::copy_n(input(call) + o * run_.from + run_.first, run_.to, output(call) + o * run_.to);
    }
  }

  void backward(const BackwardCall& call) override {
    float* dx = input_gradient(call);
    if (dx == nullptr) return;
    std::fill_n(dx, run_.outer * run_.from, 0.0F);
    for (std::int64_t o = 0; o < run_.outer; ++o) {
      std::copy_n(output_gradient(call) + o * run_.to, run_.to, dx + o * run_.from + run_.first);
    }
  }

 private:
  SliceRun run_;
};

Signature infer_slice(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  Signature signature = same_floats("slice", inputs[0]);
  const SlicePart part = slice_part(attributes, inputs[0].shape);
  signature.outputs[0].shape[part.axis] = part.end - part.begin;
  return signature;
}

}  // namespace

SliceRun slice_run(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  const SlicePart part = slice_part(*request.attributes, shape);
  SliceRun run{1, 1, 1, 1};
  for (std::size_t d = 0; d < part.axis; ++d) run.outer *= shape[d];
  std::int64_t inner = 1;
  for (std::size_t d = part.axis + 1; d < shape.size(); ++d) inner *= shape[d];
  run.from = shape[part.axis] * inner;
  run.first = part.begin * inner;
  run.to = (part.end - part.begin) * inner;
  return run;
}

OpDef make_slice() {
  OpDef op;
  op.name = "slice";
  op.doc = "a part of one dimension";
  op.attributes = {
      {.name = "axis",
       .kind = AttributeKind::integer,
       .doc = "the batch is 0; -1: the last",
       .default_value = std::int64_t{-1}},
      {.name = "begin",
       .kind = AttributeKind::integer,
       .doc = "first element kept; negative: from the end",
       .default_value = std::int64_t{0}},
      {.name = "end",
       .kind = AttributeKind::integer,
       .doc = "first element not kept; negative: from the end; default: none",
       .optional = true},
  };
  op.infer = infer_slice;
  op.cost = [](const Attributes&, std::span<const TensorSpec>, const Signature&) { return Cost{}; };
  op.kernels[DeviceKind::cpu] = kernel_of<SliceCpu>;
  return op;
}

void slice_to_onnx(OnnxScope& scope) {
  const Layout layout = scope.layout();
  const Shape& shape = scope.input_shape();
  const std::size_t axis = axis_of("slice", scope.attributes(), shape);
  std::int64_t begin = scope.attributes().integer("begin");
  if (begin < 0) begin += shape[axis];
  const std::int64_t end = begin + scope.output_shape()[axis];
  const std::string x = scope.input(0, layout);
  const std::vector<std::string> inputs{x, scope.integers({begin}), scope.integers({end}),
                                        scope.integers({OnnxScope::axis_in(layout, axis, shape.size())})};
  scope.result(scope.add("Slice", inputs), layout);
}

}  // namespace lockstep::ops
