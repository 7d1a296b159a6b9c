// The metrics that go element by element, and their kernels for CPUs: mae, rmse, and of yes or no binary_accuracy,
// precision, recall and f1.
#include <array>
#include <memory>
#include <string>

#include "ops/element_metrics/element_metrics.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_element.hpp"

namespace lockstep::ops {

namespace {

/// Sums with the association of device/cpu/reduce.hpp.
class ScoreSum {
 public:
  void add(std::int64_t i, const ElementScore& score) {
    const auto lane = static_cast<std::size_t>(i % kLanesOfSum);
    values_[lane] += score.value;
    counts_[lane] += score.count;
  }
  [[nodiscard]] ElementScore total() {
    for (std::size_t half = kLanesOfSum / 2; half > 0; half /= 2) {
      for (std::size_t lane = 0; lane < half; ++lane) {
        values_[lane] += values_[lane + half];
        counts_[lane] += counts_[lane + half];
      }
    }
    return {values_[0], counts_[0]};
  }

 private:
  static constexpr std::int64_t kLanesOfSum = 16;
  std::array<float, kLanesOfSum> values_{}, counts_{};
};

template <class Score>
class ElementMetricCpu final : public Kernel {
 public:
  explicit ElementMetricCpu(const KernelRequest& request) : rows_(request) {}

  [[nodiscard]] std::size_t workspace_bytes() const override { return rows_.workspace_bytes(); }

  void forward(const ForwardCall& call) override {
    for (std::int64_t sample = 0; sample < rows_.batch; ++sample) {
      const float* x = input(call) + sample * rows_.size;
      const float* t = rows_.target(call.inputs[1], sample, call.workspace);
      ScoreSum sum;
      for (std::int64_t i = 0; i < rows_.size; ++i) sum.add(i, Score::of(x[i], t[i]));
      const ElementScore total = sum.total();
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
  return element_metric<BinaryAccuracyScore>("binary_accuracy", "share of elements whose logit has the target's side",
                                             true);
}

OpDef make_precision() {
  return element_metric<PrecisionScore>("precision", "share of the elements said to be yes that are", true);
}

OpDef make_recall() {
  return element_metric<RecallScore>("recall", "share of the elements that are yes that are said to be", true);
}

OpDef make_f1() {
  return element_metric<F1Score>("f1", "the harmonic mean of precision and recall, of all elements together", true);
}

}  // namespace lockstep::ops
