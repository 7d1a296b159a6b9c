#include <algorithm>
#include <memory>

#include "core/vectorize.hpp"
#include "ops/arithmetic/channel_factors.hpp"
#include "ops/elementwise.hpp"
#include "ops/vectors.hpp"

namespace lockstep::ops {

namespace {

LOCKSTEP_VECTORIZED void add_products(const float* a, const float* b, float* sums, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += a[i] * b[i];
}

class ChannelFactorsCpu final : public Kernel {
 public:
  explicit ChannelFactorsCpu(const KernelRequest& request) : sizes_(request.inputs[0].shape) {}

  void forward(const ForwardCall& call) override { scale(input(call, 0), input(call, 1), output(call)); }

  void backward(const BackwardCall& call) override {
    if (float* dx = input_gradient(call, 0); dx != nullptr) scale(output_gradient(call), input(call, 1), dx);
    if (float* df = input_gradient(call, 1); df != nullptr) factors_gradient(input(call, 0), output_gradient(call), df);
  }

 private:
  void scale(const float* x, const float* factors, float* y) const {
    const auto [batch, pixels, channels] = sizes_;
    for (std::int64_t row = 0; row < batch * pixels; ++row) {
      multiply(x + row * channels, factors + row / pixels * channels, y + row * channels, channels);
    }
  }

  void factors_gradient(const float* x, const float* dy, float* df) const {
    const auto [batch, pixels, channels] = sizes_;
    std::fill_n(df, batch * channels, 0.0F);
    for (std::int64_t row = 0; row < batch * pixels; ++row) {
      add_products(x + row * channels, dy + row * channels, df + row / pixels * channels, channels);
    }
  }

  ChannelFactors sizes_;
};

}  // namespace

std::unique_ptr<Kernel> make_channel_factors_cpu(const KernelRequest& request) {
  return std::make_unique<ChannelFactorsCpu>(request);
}

}  // namespace lockstep::ops
