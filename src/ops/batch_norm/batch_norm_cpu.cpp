// Moments are taken block by block, each in two passes while it is in the first-level cache, and combined in
// double (Chan, Golub, LeVeque 1983): accurate as two passes over memory, at the cost of one.
#include <algorithm>
#include <cmath>
#include <memory>

#include "ops/batch_norm/batch_norm_kernels.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

namespace {

/// The workspace: two rows of doubles and three of floats, by channel.
struct Scratch {
  Scratch(void* workspace, std::int64_t channels)
      : first(static_cast<double*>(workspace)),
        second(first + channels),
        a(reinterpret_cast<float*>(second + channels)),
        b(a + channels),
        c(b + channels) {}
  static std::size_t bytes(std::int64_t channels) {
    return static_cast<std::size_t>(channels) * (2 * sizeof(double) + 3 * sizeof(float));
  }
  double *first, *second;
  float *a, *b, *c;
};

class BatchNormCpu final : public Kernel {
 public:
  explicit BatchNormCpu(const KernelRequest& request)
      : training_(request.mode == Mode::training),
        channels_(request.inputs[0].shape.back()),
        rows_(request.inputs[0].elements() / channels_),
        epsilon_(request.attributes->number("epsilon")),
        relu_(request.epilogue == "relu") {}

  [[nodiscard]] std::size_t workspace_bytes() const override { return Scratch::bytes(channels_); }

  void forward(const ForwardCall& call) override {
    const Scratch scratch(call.workspace, channels_);
    if (training_) {
      moments(input(call), scratch);
      finish_moments(scratch, static_cast<float*>(call.saved[0]), static_cast<float*>(call.saved[1]), call);
      return remake(call);
    }
    const auto *mean = static_cast<const float*>(call.states[0]), *variance = static_cast<const float*>(call.states[1]);
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    for (std::int64_t c = 0; c < channels_; ++c) scratch.a[c] = weight[c] * inverse_deviation(variance[c]);
    normalize_by(call, mean, scratch.a);
  }

  [[nodiscard]] bool remakes() const override { return true; }
  void remake(const ForwardCall& call) override {
    const Scratch scratch(call.workspace, channels_);
    const auto *mean = static_cast<const float*>(call.saved[0]), *inverse = static_cast<const float*>(call.saved[1]);
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    for (std::int64_t c = 0; c < channels_; ++c) scratch.a[c] = weight[c] * inverse[c];
    normalize_by(call, mean, scratch.a);
  }

  void backward(const BackwardCall& call) override {
    const Scratch scratch(call.workspace, channels_);
    const float* mean = static_cast<const float*>(call.saved[0]);
    const float* inverse = static_cast<const float*>(call.saved[1]);
    gradient_sums(call, mean, scratch);
    float *weight_gradient = call.parameter_gradients[0], *bias_gradient = call.parameter_gradients[1];
    for (std::int64_t c = 0; c < channels_; ++c) {
      if (weight_gradient != nullptr) weight_gradient[c] = static_cast<float>(scratch.second[c] * inverse[c]);
      if (bias_gradient != nullptr) bias_gradient[c] = static_cast<float>(scratch.first[c]);
    }
    if (input_gradient(call) == nullptr) return;
    const float* weight = static_cast<const float*>(call.parameters[0]);
    const double count = static_cast<double>(std::max<std::int64_t>(rows_, 1));
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double inv = inverse[c], scale = weight[c] * inv;
      scratch.a[c] = static_cast<float>(scale);
      scratch.b[c] = static_cast<float>(-scale * inv * inv * scratch.second[c] / count);
      scratch.c[c] = static_cast<float>(-scale * scratch.first[c] / count);
    }
    normalize_gradient(input(call), gradient_from(call, 0), mean, scratch.a, scratch.b, scratch.c, input_gradient(call),
                       rows_, channels_);
  }

 private:
  [[nodiscard]] OutputGradient gradient_from(const BackwardCall& call, std::int64_t at) const {
    return {output_gradient(call) + at, relu_ ? static_cast<const float*>(call.outputs[0]) + at : nullptr};
  }

  void normalize_by(const ForwardCall& call, const float* mean, const float* scale) const {
    normalize(input(call), mean, scale, static_cast<const float*>(call.parameters[1]), output(call), rows_, channels_,
              relu_);
  }

  [[nodiscard]] float inverse_deviation(double variance) const {
    return static_cast<float>(1 / std::sqrt(variance + epsilon_));
  }

  /// scratch.first: mean; scratch.second: sum of squared deviations.
  void moments(const float* x, const Scratch& scratch) const {
    std::fill_n(scratch.first, 2 * channels_, 0.0);
    const std::int64_t block = rows_per_block(channels_);
    for (std::int64_t done = 0; done < rows_; done += block) {
      const std::int64_t rows = std::min(block, rows_ - done);
      block_moments(x + done * channels_, rows, channels_, scratch.a, scratch.b);
      const auto total = static_cast<double>(done + rows);
      const double share = static_cast<double>(rows) / total, cross = static_cast<double>(done) * share;
      for (std::int64_t c = 0; c < channels_; ++c) {
        const double delta = scratch.a[c] - scratch.first[c];
        scratch.first[c] += delta * share;
        scratch.second[c] += scratch.b[c] + delta * delta * cross;
      }
    }
  }

  void finish_moments(const Scratch& scratch, float* mean, float* inverse, const ForwardCall& call) const {
    const auto count = static_cast<double>(std::max<std::int64_t>(rows_, 1));
    const auto degrees = static_cast<double>(std::max<std::int64_t>(rows_ - 1, 1));
    for (std::int64_t c = 0; c < channels_; ++c) {
      mean[c] = static_cast<float>(scratch.first[c]);
      inverse[c] = inverse_deviation(scratch.second[c] / count);
      call.statistics[0][c] = mean[c];
      call.statistics[1][c] = static_cast<float>(scratch.second[c] / degrees);
    }
  }

  /// scratch.first: sum of dy; scratch.second: sum of dy * (x - mean).
  void gradient_sums(const BackwardCall& call, const float* mean, const Scratch& scratch) const {
    std::fill_n(scratch.first, 2 * channels_, 0.0);
    const std::int64_t block = rows_per_block(channels_);
    for (std::int64_t done = 0; done < rows_; done += block) {
      const std::int64_t rows = std::min(block, rows_ - done), at = done * channels_;
      block_gradient_sums(input(call) + at, gradient_from(call, at), mean, rows, channels_, scratch.a, scratch.b);
      for (std::int64_t c = 0; c < channels_; ++c) {
        scratch.first[c] += scratch.a[c];
        scratch.second[c] += scratch.b[c];
      }
    }
  }

  bool training_;
  std::int64_t channels_, rows_;
  double epsilon_;
  bool relu_;
};

}  // namespace

std::unique_ptr<Kernel> make_batch_norm_cpu(const KernelRequest& request) {
  return std::make_unique<BatchNormCpu>(request);
}

}  // namespace lockstep::ops
