// contrastive and its kernel for CPUs; sums over a vector or over a micro-batch's
// samples have the association of device/cpu/reduce.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/reduce.hpp"
#include "device/float_math.hpp"
#include "lockstep/error.hpp"
#include "ops/contrastive/contrastive.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_sample.hpp"

namespace lockstep::ops {

namespace {

LOCKSTEP_VECTORIZED float product(const float* x, const float* y, std::int64_t n) {
  return device::dot(x, y, n);
}

LOCKSTEP_VECTORIZED void add_scaled(float factor, const float* x, float* sum, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) sum[k] += factor * x[k];
}

/// dx, the gradient by the unit vector, becomes that by x.
LOCKSTEP_VECTORIZED void through_length(const float* x, float length, float* dx, std::int64_t n) {
  const float along = device::dot(dx, x, n) * length;
  for (std::int64_t k = 0; k < n; ++k) dx[k] = (dx[k] - x[k] * length * along) * length;
}

class ContrastiveCpu final : public Kernel {
 public:
  explicit ContrastiveCpu(const KernelRequest& request) : sizes_(request) {}

  std::size_t workspace_bytes() const override { return sizes_.floats() * sizeof(float); }

  void forward(const ForwardCall& call) override {
    const std::int64_t b = sizes_.samples, d = sizes_.size;
    const float* const x = input(call);
    const auto* const labels = input<std::int32_t>(call, 1);
    const PairTensors to(call.saved, call.workspace, sizes_);
    for (std::int64_t i = 0; i < 2 * b; ++i) {
      const float* const vector = vector_at(x, i);
      to.lengths[i] = 1.0F / std::sqrt(product(vector, vector, d) + kSmallestLength);
    }
    for (std::int64_t i = 0; i < b; ++i) {
      for (std::int64_t j = 0; j < b; ++j) {
        to.cosines[i * b + j] =
            product(vector_at(x, i), vector_at(x, b + j), d) * (to.lengths[i] * to.lengths[b + j]) * sizes_.scale;
      }
    }
    for (std::int64_t i = 0; i < 2 * b; ++i) normalize(labels, i, to);
    for (std::int64_t i = 0; i < b; ++i) {
      const float own = to.cosines[i * b + i];
      output(call, 0)[i] =
          0.5F * ((to.maxima[i] - own + to.log_sums[i]) + (to.maxima[b + i] - own + to.log_sums[b + i]));
      output(call, 1)[i] = 1;
    }
  }

  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const std::int64_t b = sizes_.samples, d = sizes_.size;
    const float* const x = input(call);
    const auto* const labels = input<std::int32_t>(call, 1);
    std::array<void*, 4> saved{};
    for (std::size_t i = 0; i < saved.size(); ++i) saved[i] = const_cast<void*>(call.saved[i]);
    const PairTensors from(saved, nullptr, sizes_);
    auto* const slopes = static_cast<float*>(call.workspace);  // [b, b], by s
    for (std::int64_t i = 0; i < b; ++i) {
      for (std::int64_t j = 0; j < b; ++j) slopes[i * b + j] = slope(labels, i, j, from);
    }
    for (std::int64_t i = 0; i < 2 * b; ++i) {
      float* const dx = input_gradient(call) + (vector_at(x, i) - x);
      std::fill_n(dx, d, 0.0F);
      for (std::int64_t j = 0; j < b; ++j) {
        const float by = i < b ? slopes[i * b + j] : slopes[j * b + (i - b)];
        const std::int64_t other = i < b ? b + j : j;
        add_scaled(by * from.lengths[other], vector_at(x, other), dx, d);
      }
      through_length(vector_at(x, i), from.lengths[i], dx, d);
    }
  }

 private:
  /// Vector i of [2, samples].
  const float* vector_at(const float* x, std::int64_t i) const {
    const std::int64_t b = sizes_.samples, d = sizes_.size;
    return i < b ? x + i * 2 * d : x + (i - b) * 2 * d + d;
  }

  void normalize(const std::int32_t* labels, std::int64_t i, const PairTensors& to) const {
    const std::int64_t b = sizes_.samples, sample = i < b ? i : i - b;
    const float* const first = i < b ? to.cosines + sample * b : to.cosines + sample;
    const std::int64_t step = i < b ? 1 : b;
    float largest = -__builtin_inff();
    for (std::int64_t j = 0; j < b; ++j) {
      if (is_held_against(labels, sample, j)) largest = device::larger(first[j * step], largest);
    }
    device::Lanes total = {};
    for (std::int64_t j = 0; j < b; ++j) {
      total[j % device::kLanes] +=
          is_held_against(labels, sample, j) ? device::vector_exp(first[j * step] - largest) : 0.0F;
    }
    to.maxima[i] = largest;
    to.log_sums[i] = device::vector_log(device::combine(total));
  }

  float slope(const std::int32_t* labels, std::int64_t i, std::int64_t j, const PairTensors& from) const {
    if (!is_held_against(labels, i, j)) return 0;
    const std::int64_t b = sizes_.samples;
    const float s = from.cosines[i * b + j];
    const float row = device::vector_exp(s - from.maxima[i] - from.log_sums[i]);
    const float column = device::vector_exp(s - from.maxima[b + j] - from.log_sums[b + j]);
    return (0.5F * (row + column) - (i == j ? 1.0F : 0.0F)) * sizes_.scale;
  }

  PairSizes sizes_;
};

Signature infer_contrastive(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs) {
  const TensorSpec &prediction = inputs[0], &target = inputs[1];
  if (prediction.dtype != DType::f32 || prediction.shape.size() != 2 || prediction.shape[1] % 2 != 0) {
    throw Error(ExitCode::configuration, fmt::format("contrastive: expected a prediction [batch, 2 x "
                                                     "size] of f32, two vectors a sample, found {} "
                                                     "of {}; join the towers with `concat`",
                                                     to_string(prediction.shape), name_of(prediction.dtype)));
  }
  const std::int64_t b = prediction.shape[0];
  if (target.dtype != DType::i32 || target.shape != Shape{b}) {
    throw Error(ExitCode::configuration,
                fmt::format("contrastive: expected a target {} of i32, a label "
                            "a sample, found {} of {}",
                            to_string(Shape{b}), to_string(target.shape), name_of(target.dtype)));
  }
  Signature signature = per_sample_signature(b);
  signature.saved = {{DType::f32, {2, b}}, {DType::f32, {b, b}}, {DType::f32, {2, b}}, {DType::f32, {2, b}}};
  return signature;
}

Cost contrastive_cost(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs, const Signature& /*s*/) {
  const double n = inputs[0].elements(), b = inputs[0].shape[0];
  return {n * b + 2 * n + 40 * b * b, 2 * n * b + 6 * n + 40 * b * b};
}

}  // namespace

OpDef make_contrastive() {
  OpDef op;
  op.name = "contrastive";
  op.doc = "pairs of vectors, close to each other and far from other labels of the micro-batch (InfoNCE)";
  op.kind = OpKind::loss;
  op.compares_samples = true;
  op.attributes = {{.name = "temperature",
                    .kind = AttributeKind::number,
                    .doc = "divides cosines",
                    .default_value = 0.1,
                    .minimum = 0,
                    .above_minimum = true}};
  op.shorthand = "temperature";
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {1};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = infer_contrastive;
  op.cost = contrastive_cost;
  op.kernels[DeviceKind::cpu] = kernel_of<ContrastiveCpu>;
  return op;
}

}  // namespace lockstep::ops
