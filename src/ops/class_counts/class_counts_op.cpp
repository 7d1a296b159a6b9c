// macro_precision, macro_recall, macro_f1 and mean_iou, and their kernel for CPUs.
#include "ops/class_counts/class_counts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "ops/elementwise.hpp"
#include "ops/per_sample.hpp"

namespace lockstep::ops {

namespace {

/// Of the counts of one class: what its share is divided into.
using ClassShare = double (*)(double right, double predicted, double actual);

class ClassCountsCpu final : public Kernel {
 public:
  explicit ClassCountsCpu(const KernelRequest& request) : rows_(request) {}

  void forward(const ForwardCall& call) override {
    const std::int64_t classes = rows_.classes;
    for (std::int64_t sample = 0; sample < rows_.batch; ++sample) {
      float* const counts = output(call, 0) + sample * kClassCounts * classes;
      std::fill_n(counts, kClassCounts * classes, 0.0F);
      float counted = 0;
      for (std::int64_t i = 0; i < rows_.per_sample; ++i) {
        const std::int64_t row = sample * rows_.per_sample + i;
        if (!rows_.counts(call.inputs[1], row)) continue;
        const std::int64_t predicted = rows_.best_class(input(call) + row * classes);
        const std::int64_t actual = rows_.target_class(call.inputs[1], row);
        if (predicted == actual) counts[kRight * classes + actual] += 1;
        counts[kPredicted * classes + predicted] += 1;
        counts[kActual * classes + actual] += 1;
        counted += 1;
      }
      output(call, 1)[sample] = counted;
    }
  }

 private:
  ClassRows rows_;
};

/// NaN for a class that is neither predicted nor actual anywhere.
std::vector<double> shares_of_classes(std::span<const double> sums, ClassShare share) {
  const std::int64_t classes = (std::ssize(sums) - 1) / kClassCounts;
  std::vector<double> shares(classes, std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t k = 0; k < classes; ++k) {
    const auto count = [&](std::int64_t which) { return sums[which * classes + k]; };
    const double right = count(kRight), predicted = count(kPredicted), actual = count(kActual);
    if (predicted + actual == 0) continue;
    const double whole = share(right, predicted, actual);
    shares[k] = whole > 0 ? right / whole : 0;
  }
  return shares;
}

/// The mean over the classes that are predicted or actual anywhere, as scikit-learn has it.
double mean_over_classes(std::span<const double> sums, ClassShare share) {
  double total = 0, seen = 0;
  for (const double of_class : shares_of_classes(sums, share)) {
    if (std::isnan(of_class)) continue;
    total += of_class;
    seen += 1;
  }
  return seen > 0 ? total / seen : 0;
}

OpDef class_counts(const std::string& name, const std::string& doc, ClassShare share) {
  OpDef op = metric_of_classes(name, doc);
  op.whole_numbers = true;
  op.report = [share](std::span<const double> sums) { return mean_over_classes(sums, share); };
  op.infer = [name](const Attributes&, std::span<const TensorSpec> inputs) {
    Signature signature = classes_signature(name, inputs);
    signature.outputs[0].shape.push_back(kClassCounts * inputs[0].shape.back());
    return signature;
  };
  op.cost = elementwise_cost<3, 0>;
  op.kernels[DeviceKind::cpu] = kernel_of<ClassCountsCpu>;
  return op;
}

}  // namespace

OpDef make_macro_precision() {
  return class_counts("macro_precision", "the mean over classes of the share of their predictions that are right",
                      [](double /*right*/, double predicted, double /*actual*/) { return predicted; });
}

OpDef make_macro_recall() {
  return class_counts("macro_recall", "the mean over classes of the share of their samples that are found",
                      [](double /*right*/, double /*predicted*/, double actual) { return actual; });
}

OpDef make_macro_f1() {
  return class_counts("macro_f1", "the mean over classes of the harmonic mean of precision and recall",
                      [](double /*right*/, double predicted, double actual) { return (predicted + actual) / 2; });
}

OpDef make_mean_iou() {
  const ClassShare whole = [](double right, double predicted, double actual) { return predicted + actual - right; };
  OpDef op = class_counts("mean_iou", "the mean over classes of intersection over union", whole);
  op.of_class = {"iou", [whole](std::span<const double> sums) { return shares_of_classes(sums, whole); }};
  return op;
}

}  // namespace lockstep::ops
