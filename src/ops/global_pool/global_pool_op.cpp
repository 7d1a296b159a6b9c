// global_pool: one value per channel from a whole image; [batch, ..., channels] becomes [batch, channels]. mean and
// max: the same over one dimension, which is then gone; those before it are the samples here, those behind it the
// channels.
//
// Pixels are visited in order; of equal maxima the first one wins.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "core/vectorize.hpp"
#include "lockstep/error.hpp"
#include "ops/axis.hpp"
#include "ops/elementwise.hpp"
#include "ops/global_pool/pixel_shape.hpp"

namespace lockstep::ops {

namespace {

LOCKSTEP_VECTORIZED void mean_of_pixels(const float* x, float* y, std::int64_t pixels, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) y[c] = 0;
  for (std::int64_t p = 0; p < pixels; ++p) {
    for (std::int64_t c = 0; c < channels; ++c) y[c] += x[p * channels + c];
  }
  const float factor = 1.0F / static_cast<float>(pixels);
  for (std::int64_t c = 0; c < channels; ++c) y[c] *= factor;
}

LOCKSTEP_VECTORIZED void mean_gradient(const float* dy, float* dx, std::int64_t pixels, std::int64_t channels) {
  const float factor = 1.0F / static_cast<float>(pixels);
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
        channels_(shape.channels),
        pixels_(shape.pixels) {}

  [[nodiscard]] std::size_t workspace_bytes() const override {
    return training_ ? 0 : static_cast<std::size_t>(channels_) * sizeof(std::int32_t);
  }

  void forward(const ForwardCall& call) override {
    for (std::int64_t n = 0; n < batch_; ++n) {
      const float* x = input(call) + n * pixels_ * channels_;
      float* y = output(call) + n * channels_;
      if (maximum_) {
        auto* winner = static_cast<std::int32_t*>(training_ ? call.saved[0] : call.workspace);
        largest_of_pixels(x, y, training_ ? winner + n * channels_ : winner, pixels_, channels_);
      } else {
        mean_of_pixels(x, y, pixels_, channels_);
      }
    }
  }

  void backward(const BackwardCall& call) override {
    if (maximum_) return backward_maximum(call);
    for (std::int64_t n = 0; n < batch_; ++n) {
      mean_gradient(output_gradient(call) + n * channels_, input_gradient(call) + n * pixels_ * channels_, pixels_,
                    channels_);
    }
  }

 private:
  void backward_maximum(const BackwardCall& call) const {
    const auto* winner = static_cast<const std::int32_t*>(call.saved[0]);
    float* dx = input_gradient(call);
    std::fill_n(dx, batch_ * pixels_ * channels_, 0.0F);
    for (std::int64_t n = 0; n < batch_; ++n) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        const std::int64_t i = n * channels_ + c;
        dx[(n * pixels_ + winner[i]) * channels_ + c] = output_gradient(call)[i];
      }
    }
  }

  bool maximum_, training_;
  std::int64_t batch_, channels_, pixels_;
};

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
  return signature;
}

Cost global_pool_cost(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs,
                      const Signature& /*signature*/) {
  const auto n = static_cast<double>(inputs[0].elements());
  return {n, n};
}

Signature infer_over_axis(const std::string& op, bool maximum, const Attributes& attributes, const TensorSpec& input) {
  Signature signature = same_floats(op, input);
  const std::size_t axis = axis_of(op, attributes, input.shape);
  const std::int64_t size = input.shape[axis];
  if (size < 1 || size > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected 1 to 2^31 - 1 elements of dimension {} of {}, found {}", op, axis,
                            to_string(input.shape), size));
  }
  Shape& out = signature.outputs[0].shape;
  out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  if (maximum) signature.saved.push_back({DType::i32, out});  // index of the winner
  return signature;
}

OpDef over_axis(const std::string& name, const std::string& doc, bool maximum) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.attributes = {{.name = "axis",
                    .kind = AttributeKind::integer,
                    .doc = "the dimension, with the batch as 0; -1: the last",
                    .default_value = std::int64_t{-1}}};
  op.shorthand = "axis";
  op.infer = [name, maximum](const Attributes& attributes, std::span<const TensorSpec> inputs) {
    return infer_over_axis(name, maximum, attributes, inputs[0]);
  };
  op.cost = global_pool_cost;
  op.kernels[DeviceKind::cpu] = [name, maximum](const KernelRequest& request) {
    return std::make_unique<GlobalPoolCpu>(request, maximum, shape_over_axis(name, request));
  };
  return op;
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
  return over_axis("max", "the largest element along one dimension", true);
}

OpDef make_global_pool() {
  OpDef op;
  op.name = "global_pool";
  op.doc = "the mean (or the largest) of all pixels, by channel";
  op.attributes = {{.name = "kind",
                    .kind = AttributeKind::text,
                    .doc = "average or max",
                    .default_value = Attribute(std::string("average")),
                    .choices = {"average", "max"}}};
  op.shorthand = "kind";
  op.infer = infer_global_pool;
  op.cost = global_pool_cost;
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) {
    return std::make_unique<GlobalPoolCpu>(request, is_maximum(*request.attributes), shape_of_pixels(request));
  };
  return op;
}

}  // namespace lockstep::ops
