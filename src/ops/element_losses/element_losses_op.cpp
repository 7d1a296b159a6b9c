// The losses that go element by element, and their kernels for CPUs: mean_squared_error, mean_absolute_error, huber,
// and binary_cross_entropy of logits. A sample's loss is the sum over its elements; its count is their number.
#include <memory>
#include <string>

#include "core/vectorize.hpp"
#include "device/cpu/reduce.hpp"
#include "ops/element_losses/element_losses.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_element.hpp"
#include "ops/per_sample.hpp"

namespace lockstep::ops {

namespace {

using device::kLanes;
using device::Lanes;

/// With the association of device/cpu/reduce.hpp.
template <class Formula>
LOCKSTEP_VECTORIZED float sum_of_losses(Formula formula, const float* x, const float* t, std::int64_t n) {
  Lanes total = {}, a, b;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    device::load(a, x + i);
    device::load(b, t + i);
    total += formula.of(a, b);
  }
  for (std::int64_t lane = 0; i < n; ++i, ++lane) total[lane] += formula.of(x[i], t[i]);
  return device::combine(total);
}

template <class Formula>
LOCKSTEP_VECTORIZED void loss_gradient(Formula formula, const float* x, const float* t, float* dx, std::int64_t n) {
  device::map(x, t, dx, n, [formula](const Lanes& a, const Lanes& b) LOCKSTEP_INLINE_LAMBDA -> Lanes {
    return formula.gradient(a, b);
  });
}

template <class Formula>
class ElementLossCpu final : public Kernel {
 public:
  explicit ElementLossCpu(const KernelRequest& request) : rows_(request), formula_(*request.attributes) {}

  std::size_t workspace_bytes() const override { return rows_.workspace_bytes(); }

  void forward(const ForwardCall& call) override {
    for (std::int64_t sample = 0; sample < rows_.batch; ++sample) {
      const float* t = rows_.target(call.inputs[1], sample, call.workspace);
      if (Formula::kBinary) rows_.require_shares("binary_cross_entropy", t);
      output(call, 0)[sample] = sum_of_losses(formula_, input(call) + sample * rows_.size, t, rows_.size);
      output(call, 1)[sample] = rows_.size;
    }
  }

  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    for (std::int64_t sample = 0; sample < rows_.batch; ++sample) {
      const float* t = rows_.target(call.inputs[1], sample, call.workspace);
      const std::int64_t at = sample * rows_.size;
      loss_gradient(formula_, input(call) + at, t, input_gradient(call) + at, rows_.size);
    }
  }

 private:
  ElementRows rows_;
  Formula formula_;
};

template <class Formula>
OpDef element_loss(const std::string& name, const std::string& doc, bool binary = false) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.kind = OpKind::loss;
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {1};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = [name, binary](const Attributes&, std::span<const TensorSpec> inputs) {
    return elements_signature(name, inputs, binary);
  };
  op.cost = elementwise_cost<Formula::kCost, Formula::kGradientCost>;
  op.kernels[DeviceKind::cpu] = kernel_of<ElementLossCpu<Formula>>;
  return op;
}

}  // namespace

OpDef make_mean_squared_error() {
  return element_loss<SquaredError>("mean_squared_error", "mean squared difference");
}

OpDef make_mean_absolute_error() {
  return element_loss<AbsoluteError>("mean_absolute_error", "mean absolute difference");
}

OpDef make_huber() {
  OpDef op = element_loss<HuberError>("huber", "half the squared difference up to delta, linear beyond");
  op.attributes = {{.name = "delta",
                    .kind = AttributeKind::number,
                    .doc = "where the parabola ends",
                    .default_value = 1.0,
                    .minimum = 0,
                    .above_minimum = true}};
  op.shorthand = "delta";
  return op;
}

OpDef make_binary_cross_entropy() {
  OpDef op =
      element_loss<BinaryCrossEntropy>("binary_cross_entropy", "binary cross entropy of logits, per element", true);
  op.activation = "sigmoid";
  op.targets = TargetKind::shares;
  op.attributes = {{.name = "positive_weight",
                    .kind = AttributeKind::number,
                    .doc = "weight of positive targets",
                    .default_value = 1.0,
                    .minimum = 0,
                    .above_minimum = true},
                   {.name = "label_smoothing",
                    .kind = AttributeKind::number,
                    .doc = "share of the target spread over both classes",
                    .default_value = 0.0,
                    .minimum = 0,
                    .maximum = 1},
                   focal_attribute()};
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) -> std::unique_ptr<Kernel> {
    if (focal_of(*request.attributes) > 0) {
      return std::make_unique<ElementLossCpu<FocalBinaryCrossEntropy>>(request);
    }
    return std::make_unique<ElementLossCpu<BinaryCrossEntropy>>(request);
  };
  return op;
}

}  // namespace lockstep::ops
