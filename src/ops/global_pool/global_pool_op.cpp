// global_pool: one value per channel from a whole image; [batch, ..., channels] becomes [batch, channels].
//
// Pixels are visited in order; of equal maxima the first one wins.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "core/vectorize.hpp"
#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"

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
  explicit GlobalPoolCpu(const KernelRequest& request)
      : maximum_(request.attributes->text("kind") == "max"),
        training_(request.mode == Mode::training),
        batch_(request.outputs[0].shape[0]),
        channels_(request.outputs[0].shape[1]) {
    const Shape& x = request.inputs[0].shape;
    for (std::size_t i = 1; i + 1 < x.size(); ++i) pixels_ *= x[i];
  }

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
  std::int64_t batch_, channels_, pixels_ = 1;
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

}  // namespace

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
  op.kernels[DeviceKind::cpu] = kernel_of<GlobalPoolCpu>;
  return op;
}

}  // namespace lockstep::ops
