// A sample's loss is the sum over its elements; its count is their number. The gradient is 2 * (x - t).
#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/reduce.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

namespace {

using device::kLanes;
using device::Lanes;

LOCKSTEP_VECTORIZED float squared_difference(const float* x, const float* t, std::int64_t n) {
  Lanes total = {}, a, b;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    device::load(a, x + i);
    device::load(b, t + i);
    total += (a - b) * (a - b);
  }
  if (i < n) {
    device::load_part(a, x + i, n - i, 0);
    device::load_part(b, t + i, n - i, 0);
    total += (a - b) * (a - b);
  }
  return device::combine(total);
}

LOCKSTEP_VECTORIZED void gradient(const float* x, const float* t, float* dx, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = 2.0F * (x[i] - t[i]);
}

class MeanSquaredErrorCpu final : public Kernel {
 public:
  MeanSquaredErrorCpu(std::int64_t batch, std::int64_t size) : batch_(batch), size_(size) {}

  void forward(const ForwardCall& call) override {
    for (std::int64_t sample = 0; sample < batch_; ++sample) {
      const std::int64_t at = sample * size_;
      output(call, 0)[sample] = squared_difference(input(call, 0) + at, input(call, 1) + at, size_);
      output(call, 1)[sample] = static_cast<float>(size_);
    }
  }

  void backward(const BackwardCall& call) override {
    if (input_gradient(call) != nullptr) gradient(input(call, 0), input(call, 1), input_gradient(call), batch_ * size_);
  }

 private:
  std::int64_t batch_, size_;
};

}  // namespace

std::unique_ptr<Kernel> make_mean_squared_error_cpu(const KernelRequest& request) {
  const std::int64_t batch = request.inputs[0].shape[0];
  return std::make_unique<MeanSquaredErrorCpu>(batch, batch == 0 ? 0 : request.inputs[0].elements() / batch);
}

}  // namespace lockstep::ops
