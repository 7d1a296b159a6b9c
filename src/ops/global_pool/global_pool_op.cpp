// global_pool: one value per channel from a whole image; [batch, ..., channels] becomes [batch, channels]. mean and
// max: the same over one dimension, which is then gone; those before it are the samples here, those behind it the
// channels. With lengths as a second input (ops/lengths.hpp) they are of dimension 1, and count the first ones of each
// sample.
//
// Pixels are visited in order; of equal maxima the first one wins.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/vectorize.hpp"
#include "lockstep/error.hpp"
#include "ops/axis.hpp"
#include "ops/elementwise.hpp"
#include "ops/global_pool/pixel_shape.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

namespace {

LOCKSTEP_VECTORIZED void mean_of_pixels(const float* x, float* y, std::int64_t pixels, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) y[c] = 0;
  for (std::int64_t p = 0; p < pixels; ++p) {
    for (std::int64_t c = 0; c < channels; ++c) y[c] += x[p * channels + c];
  }
  const float factor = 1.0F / pixels;
  for (std::int64_t c = 0; c < channels; ++c) y[c] *= factor;
}

LOCKSTEP_VECTORIZED void mean_gradient(const float* dy, float* dx, std::int64_t pixels, std::int64_t channels) {
  const float factor = 1.0F / pixels;
  for (std::int64_t p = 0; p < pixels; ++p) {
    for (std::int64_t c = 0; c < channels; ++c) dx[p * channels + c] = dy[c] * factor;
  }
}

LOCKSTEP_VECTORIZED void largest_of_pixels(const float* x, float* y, std::int32_t* winner, std::int64_t pixels,
                                           std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) {
    y[c] = x[c];
    winner[c] = 0;
  }
  for (std::int64_t p = 1; p < pixels; ++p) {
    const float* pixel = x + p * channels;
    for (std::int64_t c = 0; c < channels; ++c) {
      const bool wins = pixel[c] > y[c] || pixel[c] != pixel[c];
      y[c] = wins ? pixel[c] : y[c];
      winner[c] = wins ? static_cast<std::int32_t>(p) : winner[c];
    }
  }
}

class GlobalPoolCpu final : public Kernel {
 public:
  GlobalPoolCpu(const KernelRequest& request, bool maximum, const PixelShape& shape)
      : maximum_(maximum),
        training_(request.mode == Mode::training),
        batch_(shape.channels == 0 ? 0 : request.outputs[0].elements() / shape.channels),
        shape_(shape) {}

  std::size_t workspace_bytes() const override { return training_ ? 0 : shape_.channels * sizeof(std::int32_t); }

  void forward(const ForwardCall& call) override {
    const auto [pixels, channels] = shape_;
    const Lengths counts = pixel_counts(call, shape_);
    for (std::int64_t n = 0; n < batch_; ++n) {
      const float* x = input(call) + n * pixels * channels;
      float* y = output(call) + n * channels;
      if (maximum_) {
        auto* winner = static_cast<std::int32_t*>(training_ ? call.saved[0] : call.workspace);
        largest_of_pixels(x, y, training_ ? winner + n * channels : winner, counts.of(n), channels);
      } else {
        mean_of_pixels(x, y, counts.of(n), channels);
      }
    }
    if (counts.data != nullptr && training_ && !maximum_) {
      std::copy_n(counts.data, batch_, static_cast<std::int32_t*>(call.saved[0]));
    }
  }

  void backward(const BackwardCall& call) override {
    if (maximum_) return backward_maximum(call);
    const auto [pixels, channels] = shape_;
    const Lengths counts = pixel_counts(call, shape_);
    for (std::int64_t n = 0; n < batch_; ++n) {
      float* dx = input_gradient(call) + n * pixels * channels;
      mean_gradient(output_gradient(call) + n * channels, dx, counts.of(n), channels);
      std::fill(dx + counts.of(n) * channels, dx + pixels * channels, 0.0F);
    }
  }

 private:
  void backward_maximum(const BackwardCall& call) const {
    const auto* winner = static_cast<const std::int32_t*>(call.saved[0]);
    float* dx = input_gradient(call);
    const auto [pixels, channels] = shape_;
    std::fill_n(dx, batch_ * pixels * channels, 0.0F);
    for (std::int64_t n = 0; n < batch_; ++n) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::int64_t i = n * channels + c;
        dx[(n * pixels + winner[i]) * channels + c] = output_gradient(call)[i];
      }
    }
  }

  bool maximum_, training_;
  std::int64_t batch_;
  PixelShape shape_;
};

/// A mean's lengths are kept for backward.
void take_lengths(const std::string& op, bool maximum, std::size_t axis, std::span<const TensorSpec> inputs,
                  Signature& signature) {
  if (inputs.size() < 2) return;
  require_lengths(op, inputs[0], inputs[1]);
  if (axis != 1) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected dimension 1 to be the one that is joined, since lengths are of it, found "
                            "dimension {} of {}; set axis: 1",
                            op, axis, to_string(inputs[0].shape)));
  }
  if (!maximum) signature.saved.push_back(inputs[1]);
}

bool is_maximum(const Attributes& attributes) {
  return attributes.text("kind") == "max";
}

Signature infer_global_pool(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const TensorSpec& x = inputs[0];
  std::int64_t pixels = 1;
  for (std::size_t i = 1; i + 1 < x.shape.size(); ++i) pixels *= x.shape[i];
  if (x.dtype != DType::f32 || x.shape.size() < 3 || pixels == 0) {
    throw Error(ExitCode::configuration,
                fmt::format("global_pool: expected images [batch, height, width, channels] of f32, found {} of {}",
                            to_string(x.shape), name_of(x.dtype)));
  }
  if (pixels > std::numeric_limits<std::int32_t>::max()) {  // the winning pixel's index is stored in 32 bits
    throw Error(ExitCode::configuration,
                fmt::format("global_pool: expected images of fewer than 2^31 pixels, found {}", pixels));
  }
  const Shape out{x.shape.front(), x.shape.back()};
  Signature signature;
  signature.outputs.push_back({DType::f32, out});
  if (is_maximum(attributes)) signature.saved.push_back({DType::i32, out});  // index of the winning pixel
  if (inputs.size() > 1 && x.shape.size() != 3) {
    throw Error(
        ExitCode::configuration,
        fmt::format("global_pool: expected lengths of [batch, time, width], found them of {}", to_string(x.shape)));
  }
  take_lengths("global_pool", is_maximum(attributes), 1, inputs, signature);
  return signature;
}

Cost global_pool_cost(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs,
                      const Signature& /*signature*/) {
  const double n = inputs[0].elements();
  return {n, n};
}

Signature infer_over_axis(const std::string& op, bool maximum, const Attributes& attributes,
                          std::span<const TensorSpec> inputs) {
  const TensorSpec& input = inputs[0];
  Signature signature = same_floats(op, input);
  const std::size_t axis = axis_of(op, attributes, input.shape);
  const std::int64_t size = input.shape[axis];
  if (size < 1 || size > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected 1 to 2^31 - 1 elements of dimension {} of {}, found {}", op, axis,
                            to_string(input.shape), size));
  }
  Shape& out = signature.outputs[0].shape;
  out.erase(out.begin() + axis);
  if (maximum) signature.saved.push_back({DType::i32, out});  // index of the winner
  take_lengths(op, maximum, axis, inputs, signature);
  return signature;
}

OpDef over_axis(const std::string& name, const std::string& doc, bool maximum) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.attributes = {{.name = "axis",
                    .kind = AttributeKind::integer,
                    .doc = "the batch is 0; -1: the last",
                    .default_value = std::int64_t{-1}}};
  op.shorthand = "axis";
  op.max_inputs = 2;
  op.constant_inputs = {1};
  op.infer = [name, maximum](const Attributes& attributes, std::span<const TensorSpec> inputs) {
    return infer_over_axis(name, maximum, attributes, inputs);
  };
  op.cost = global_pool_cost;
  op.kernels[DeviceKind::cpu] = [name, maximum](const KernelRequest& request) {
    return std::make_unique<GlobalPoolCpu>(request, maximum, shape_over_axis(name, request));
  };
  return op;
}

void reduce(OnnxScope& scope, bool maximum, Layout layout, std::vector<std::int64_t> axes) {
  const std::string x = scope.input(0, layout), over = scope.integers(std::move(axes));
  scope.result(scope.add(maximum ? "ReduceMax" : "ReduceMean", {x, over}, {{"keepdims", std::int64_t{0}}}));
}

/// Over the positions [b, T, ...] that come before each sample's end.
void reduce_counted(OnnxScope& scope, bool maximum) {
  const std::string over = scope.integers({1}), x = scope.with_padding(maximum ? -INFINITY : 0.0F);
  const std::string made = scope.add(maximum ? "ReduceMax" : "ReduceSum", {x, over}, {{"keepdims", std::int64_t{0}}});
  if (maximum) return scope.result(made);
  std::vector<std::int64_t> like(scope.output_shape().size(), 1);
  like[0] = 0;
  scope.result(scope.add("Div", {made, scope.reshape(scope.lengths_as_floats(1), std::move(like))}));
}

void reduce_axis(OnnxScope& scope, bool maximum) {
  if (scope.node().inputs.size() > 1) return reduce_counted(scope, maximum);
  const auto axis = axis_of(maximum ? "max" : "mean", scope.attributes(), scope.input_shape());
  reduce(scope, maximum, Layout::channels_last, {static_cast<std::int64_t>(axis)});
}

}  // namespace

PixelShape shape_of_pixels(const KernelRequest& request) {
  const Shape& x = request.inputs[0].shape;
  PixelShape shape{1, x.back()};
  for (std::size_t i = 1; i + 1 < x.size(); ++i) shape.pixels *= x[i];
  return shape;
}

PixelShape shape_over_axis(const std::string& op, const KernelRequest& request) {
  const Shape& x = request.inputs[0].shape;
  const std::size_t axis = axis_of(op, *request.attributes, x);
  PixelShape shape{x[axis], 1};
  for (std::size_t i = axis + 1; i < x.size(); ++i) shape.channels *= x[i];
  return shape;
}

OpDef make_mean() {
  return over_axis("mean", "the mean over one dimension", false);
}

OpDef make_max() {
  return over_axis("max", "the maximum along one dimension", true);
}

OpDef make_global_pool() {
  OpDef op;
  op.name = "global_pool";
  op.doc = "the mean or maximum of all pixels, by channel";
  op.attributes = {{.name = "kind",
                    .kind = AttributeKind::text,
                    .doc = "average or max",
                    .default_value = Attribute(std::string("average")),
                    .choices = {"average", "max"}}};
  op.shorthand = "kind";
  op.max_inputs = 2;
  op.constant_inputs = {1};
  op.infer = infer_global_pool;
  op.cost = global_pool_cost;
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) {
    return std::make_unique<GlobalPoolCpu>(request, is_maximum(*request.attributes), shape_of_pixels(request));
  };
  return op;
}

void mean_to_onnx(OnnxScope& scope) {
  reduce_axis(scope, false);
}

void max_to_onnx(OnnxScope& scope) {
  reduce_axis(scope, true);
}

void global_pool_to_onnx(OnnxScope& scope) {
  const Layout layout = scope.layout();
  const std::size_t dimensions = scope.input_shape().size();
  if (dimensions == 2) return scope.result(scope.input());
  if (scope.node().inputs.size() > 1) return reduce_counted(scope, scope.attributes().text("kind") == "max");
  std::vector<std::int64_t> axes;
  for (std::size_t i = 1; i + 1 < dimensions; ++i) axes.push_back(OnnxScope::axis_in(layout, i, dimensions));
  reduce(scope, scope.attributes().text("kind") == "max", layout, std::move(axes));
}

}  // namespace lockstep::ops
