// triplet and its kernel for CPUs; a distance's sum has the association of
// device/cpu/reduce.hpp.
#include "ops/triplet/triplet.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/reduce.hpp"
#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_sample.hpp"

namespace lockstep::ops {

namespace {

LOCKSTEP_VECTORIZED float squared_distance(const float* x, const float* y, std::int64_t n) {
  device::Lanes total = {};
  for (std::int64_t k = 0; k < n; ++k) total[k % device::kLanes] += (x[k] - y[k]) * (x[k] - y[k]);
  return device::combine(total);
}

/// x, dx: anchor, positive and negative, one after the other.
LOCKSTEP_VECTORIZED void triplet_gradient(const float* x, const float* inverse, float* dx, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) {
    const float of_positive = (x[k] - x[n + k]) * inverse[0], of_negative = (x[k] - x[2 * n + k]) * inverse[1];
    dx[k] = of_positive - of_negative;
    dx[n + k] = -of_positive;
    dx[2 * n + k] = of_negative;
  }
}

class TripletCpu final : public Kernel {
 public:
  explicit TripletCpu(const KernelRequest& request) : sizes_(request) {}

  void forward(const ForwardCall& call) override {
    const std::int64_t d = sizes_.size;
    for (std::int64_t i = 0; i < sizes_.samples; ++i) {
      const float* const x = input(call) + i * 3 * d;
      const float positive = std::sqrt(squared_distance(x, x + d, d) + kSmallestDistance);
      const float negative = std::sqrt(squared_distance(x, x + 2 * d, d) + kSmallestDistance);
      const float loss = positive - negative + sizes_.margin;
      output(call, 0)[i] = loss <= 0 ? 0 : loss;
      output(call, 1)[i] = 1;
      if (call.saved.empty()) continue;
      auto* const inverse = static_cast<float*>(call.saved[0]) + 2 * i;
      inverse[0] = loss <= 0 ? 0 : 1.0F / positive;
      inverse[1] = loss <= 0 ? 0 : 1.0F / negative;
    }
  }

  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const std::int64_t row = 3 * sizes_.size;
    for (std::int64_t i = 0; i < sizes_.samples; ++i) {
      triplet_gradient(input(call) + i * row, static_cast<const float*>(call.saved[0]) + 2 * i,
                       input_gradient(call) + i * row, sizes_.size);
    }
  }

 private:
  TripletSizes sizes_;
};

Signature infer_triplet(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs) {
  const TensorSpec& prediction = inputs[0];
  if (prediction.dtype != DType::f32 || prediction.shape.size() != 2 || prediction.shape[1] % 3 != 0) {
    throw Error(ExitCode::configuration, fmt::format("triplet: expected a prediction [batch, 3 x size] "
                                                     "of f32, anchor, positive and negative, "
                                                     "found {} of {}; join the three with `concat`",
                                                     to_string(prediction.shape), name_of(prediction.dtype)));
  }
  Signature signature = per_sample_signature(prediction.shape[0]);
  signature.saved = {{DType::f32, {prediction.shape[0], 2}}};
  return signature;
}

}  // namespace

OpDef make_triplet() {
  OpDef op;
  op.name = "triplet";
  op.doc = "three vectors: the first nearer to the second than to the third, by a margin";
  op.kind = OpKind::loss;
  op.attributes = {{.name = "margin",
                    .kind = AttributeKind::number,
                    .doc = "difference of the distances",
                    .default_value = 1.0,
                    .minimum = 0,
                    .above_minimum = true}};
  op.shorthand = "margin";
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {1};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = infer_triplet;
  op.cost = elementwise_cost<3, 3>;
  op.kernels[DeviceKind::cpu] = kernel_of<TripletCpu>;
  return op;
}

}  // namespace lockstep::ops
