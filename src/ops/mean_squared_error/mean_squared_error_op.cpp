// mean_squared_error: (prediction - target)^2, averaged over all elements of all samples; a loss. A target [b] fits a
// prediction [b, 1].
//
// A sample's loss is the sum over its elements; its count is their number. The gradient is 2 * (x - t).
#include <fmt/format.h>

#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/reduce.hpp"
#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_sample.hpp"

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

std::unique_ptr<Kernel> make_mean_squared_error_cpu(const KernelRequest& request) {
  const std::int64_t batch = request.inputs[0].shape[0];
  return std::make_unique<MeanSquaredErrorCpu>(batch, batch == 0 ? 0 : request.inputs[0].elements() / batch);
}

Signature infer_mean_squared_error(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs) {
  const TensorSpec &prediction = inputs[0], &target = inputs[1];
  Shape column = target.shape;
  column.push_back(1);
  const bool fits = prediction.shape == target.shape || prediction.shape == column;
  if (prediction.dtype != DType::f32 || target.dtype != DType::f32 || prediction.shape.empty() || !fits) {
    throw Error(
        ExitCode::configuration,
        fmt::format(
            "mean_squared_error: expected a prediction and a target of one shape and of f32, found {} of {} and "
            "{} of {}",
            to_string(prediction.shape), name_of(prediction.dtype), to_string(target.shape), name_of(target.dtype)));
  }
  return per_sample_signature(prediction.shape[0]);
}

}  // namespace

OpDef make_mean_squared_error() {
  OpDef op;
  op.name = "mean_squared_error";
  op.doc = "the mean of squared differences";
  op.kind = OpKind::loss;
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {1};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = infer_mean_squared_error;
  op.cost = elementwise_cost<3, 2>;
  op.kernels[DeviceKind::cpu] = make_mean_squared_error_cpu;
  return op;
}

}  // namespace lockstep::ops
