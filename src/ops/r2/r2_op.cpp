// r2 and its kernel for CPUs; sums have the association of device/cpu/reduce.hpp.
#include "ops/r2/r2.hpp"

#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/reduce.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_element.hpp"

namespace lockstep::ops {

namespace {

LOCKSTEP_VECTORIZED float sum_of_targets(const float* t, std::int64_t n) {
  return device::sum(t, n);
}

/// The sum of (t[i] - mean)^2.
LOCKSTEP_VECTORIZED float spread_of_targets(const float* t, std::int64_t n, float mean) {
  device::Lanes total = {};
  for (std::int64_t i = 0; i < n; ++i) total[i % device::kLanes] += (t[i] - mean) * (t[i] - mean);
  return device::combine(total);
}

LOCKSTEP_VECTORIZED float squared_residuals(const float* x, const float* t, std::int64_t n) {
  device::Lanes total = {};
  for (std::int64_t i = 0; i < n; ++i) total[i % device::kLanes] += (x[i] - t[i]) * (x[i] - t[i]);
  return device::combine(total);
}

class R2Cpu final : public Kernel {
 public:
  explicit R2Cpu(const KernelRequest& request) : rows_(request) {}

  void forward(const ForwardCall& call) override {
    const std::int64_t n = rows_.size;
    for (std::int64_t sample = 0; sample < rows_.batch; ++sample) {
      const float *x = input(call) + sample * n, *t = rows_.target(call.inputs[1], sample, call.workspace);
      const float sum = sum_of_targets(t, n);
      const SplitSquare square = split_square(sum);
      float* const to = output(call, 0) + sample * kR2Values;
      to[kResidual] = squared_residuals(x, t, n);
      to[kSum] = sum;
      to[kSquare] = square.leading;
      to[kSquareRest] = square.rest;
      to[kSpread] = spread_of_targets(t, n, sum / n);
      to[kSample] = 1;
      output(call, 1)[sample] = n;
    }
  }

 private:
  ElementRows rows_;
};

/// Every sample has as many elements: their squares of sums are divided by that number here. Where all targets are
/// equal, 1 if the predictions are, too, else 0.
double r2_of(std::span<const double> all) {
  const double* const sums = all.data();
  const double count = sums[kR2Values], samples = sums[kSample];
  if (!(count > 0)) return 0;
  const double squares = (sums[kSquare] + sums[kSquareRest]) * (samples / count);
  const double spread = sums[kSpread] + (squares - sums[kSum] * sums[kSum] / count);
  if (spread <= 0) return sums[kResidual] == 0 ? 1 : 0;
  return 1 - sums[kResidual] / spread;
}

}  // namespace

OpDef make_r2() {
  OpDef op;
  op.name = "r2";
  op.doc = "the coefficient of determination: 1 minus the squared error over that of the targets' mean";
  op.kind = OpKind::metric;
  op.min_inputs = op.max_inputs = 2;
  op.differentiable = false;
  op.constant_inputs = {0, 1};
  op.report = r2_of;
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) {
    Signature signature = elements_signature("r2", inputs, false);
    signature.outputs[0].shape.push_back(kR2Values);
    return signature;
  };
  op.cost = elementwise_cost<8, 0>;
  op.kernels[DeviceKind::cpu] = kernel_of<R2Cpu>;
  return op;
}

}  // namespace lockstep::ops
