// The metrics that go element by element, and their kernels for CPUs: mae, rmse, and the binary ones: accuracy,
// precision, recall, f1 and iou.
#include <memory>
#include <string>

#include "core/vectorize.hpp"
#include "device/cpu/reduce.hpp"
#include "ops/element_metrics/element_metrics.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_element.hpp"

namespace lockstep::ops {

namespace {

/// Sums with the association of device/cpu/reduce.hpp.
template <class Score>
LOCKSTEP_VECTORIZED ElementScore sum_of_scores(const float* x, const float* t, std::int64_t n) {
  device::Lanes values = {}, counts = {};
  for (std::int64_t i = 0; i < n; ++i) {
    const ElementScore score = Score::of(x[i], t[i]);
    values[i % device::kLanes] += score.value;
    counts[i % device::kLanes] += score.count;
  }
  return {device::combine(values), device::combine(counts)};
}

template <class Score>
class ElementMetricCpu final : public Kernel {
 public:
  explicit ElementMetricCpu(const KernelRequest& request) : rows_(request) {}

  std::size_t workspace_bytes() const override { return rows_.workspace_bytes(); }

  void forward(const ForwardCall& call) override {
    for (std::int64_t sample = 0; sample < rows_.batch; ++sample) {
      const float* x = input(call) + sample * rows_.size;
      const float* t = rows_.target(call.inputs[1], sample, call.workspace);
      const ElementScore total = sum_of_scores<Score>(x, t, rows_.size);
      output(call, 0)[sample] = total.value;
      output(call, 1)[sample] = total.count;
    }
  }

 private:
  ElementRows rows_;
};

template <class Score>
OpDef element_metric(const std::string& name, const std::string& doc, bool binary) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.kind = OpKind::metric;
  op.min_inputs = op.max_inputs = 2;
  op.differentiable = false;
  op.higher_is_better = binary;
  op.constant_inputs = {0, 1};
  op.infer = [name, binary](const Attributes&, std::span<const TensorSpec> inputs) {
    return elements_signature(name, inputs, binary);
  };
  op.cost = elementwise_cost<4, 0>;
  op.kernels[DeviceKind::cpu] = kernel_of<ElementMetricCpu<Score>>;
  return op;
}

}  // namespace

OpDef make_mae() {
  return element_metric<AbsoluteErrorScore>("mae", "the mean absolute error", false);
}

OpDef make_rmse() {
  OpDef op = element_metric<SquaredErrorScore>("rmse", "the root of the mean squared error", false);
  op.root = true;
  return op;
}

OpDef make_binary_accuracy() {
  return element_metric<BinaryAccuracyScore>("binary_accuracy", "share of elements that are classified as their target",
                                             true);
}

OpDef make_precision() {
  return element_metric<PrecisionScore>("precision", "share of the predicted positives that are positive", true);
}

OpDef make_recall() {
  return element_metric<RecallScore>("recall", "share of the positives that are predicted", true);
}

OpDef make_iou() {
  return element_metric<IouScore>("iou", "intersection over union of the predicted and the actual positives", true);
}

OpDef make_f1() {
  return element_metric<F1Score>("f1", "the harmonic mean of precision and recall, of all elements together", true);
}

}  // namespace lockstep::ops
