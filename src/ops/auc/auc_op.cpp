// auc: the area under the ROC curve of all samples, of several labels the mean over those that some samples have and
// others have not. It depends on how all samples' scores are ordered, which no sums tell: a sample leaves its scores
// and targets, and the area is computed of all of them (OpDef::of_samples).
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <memory>

#include "lockstep/error.hpp"
#include "ops/auc/area_under_curve.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_element.hpp"

namespace lockstep::ops {

namespace {

constexpr std::int64_t kMostLabels = 200;

class AucCpu final : public Kernel {
 public:
  explicit AucCpu(const KernelRequest& request) : rows_(request) {}

  std::size_t workspace_bytes() const override { return rows_.workspace_bytes(); }

  void forward(const ForwardCall& call) override {
    for (std::int64_t sample = 0; sample < rows_.batch; ++sample) {
      const float* const x = input(call) + sample * rows_.size;
      const float* const t = rows_.target(call.inputs[1], sample, call.workspace);
      float* const to = output(call) + sample * 2 * rows_.size;
      for (std::int64_t i = 0; i < rows_.size; ++i) {
        to[2 * i] = x[i];
        to[2 * i + 1] = t[i] > 0.5F ? 1 : 0;
      }
      output(call, 1)[sample] = rows_.size;
    }
  }

 private:
  ElementRows rows_;
};

Signature infer_auc(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs) {
  Signature signature = elements_signature("auc", inputs, true);
  std::int64_t labels = 1;
  for (std::size_t d = 1; d < inputs[0].shape.size(); ++d) labels *= inputs[0].shape[d];
  if (labels > kMostLabels) {
    throw Error(ExitCode::configuration, fmt::format("auc: expected at most {} labels a sample, found {}; of masks use "
                                                     "iou",
                                                     kMostLabels, labels));
  }
  signature.outputs[0].shape.push_back(2 * labels);
  return signature;
}

/// NaN if a score is, or no label has both positives and negatives.
double auc_of(std::span<const float> values, std::size_t samples) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const std::size_t labels = samples == 0 ? 0 : values.size() / samples / 2;
  double sum = 0;
  int areas = 0;
  for (std::size_t label = 0; label < labels; ++label) {
    std::vector<std::pair<double, bool>> scores;
    for (std::size_t sample = 0; sample < samples; ++sample) {
      const float* const of = &values[2 * (sample * labels + label)];
      if (std::isnan(of[0])) return kNone;
      scores.emplace_back(of[0], of[1] == 1);
    }
    const auto area = area_under_curve(std::move(scores));
    if (!area) continue;
    sum += *area;
    ++areas;
  }
  return areas == 0 ? kNone : sum / areas;
}

}  // namespace

OpDef make_auc() {
  OpDef op;
  op.name = "auc";
  op.doc = "the area under the ROC curve, of several labels their mean; of evaluations only";
  op.kind = OpKind::metric;
  op.min_inputs = op.max_inputs = 2;
  op.differentiable = false;
  op.constant_inputs = {0, 1};
  op.of_samples = auc_of;
  op.infer = infer_auc;
  op.cost = elementwise_cost<1, 0>;
  op.kernels[DeviceKind::cpu] = kernel_of<AucCpu>;
  return op;
}

}  // namespace lockstep::ops
