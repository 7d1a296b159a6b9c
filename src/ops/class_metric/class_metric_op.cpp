// Metrics that test whether the target is among a row's k best classes: accuracy (k = 1), top_k. Of equal scores, the
// class with the lower index wins; a NaN beats the target.
#include <memory>
#include <string>

#include "core/top_k.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_sample.hpp"

namespace lockstep::ops {

namespace {

class ClassMetricCpu final : public Kernel {
 public:
  ClassMetricCpu(const ClassRows& rows, std::int64_t best) : rows_(rows), best_(best) {}

  void forward(const ForwardCall& call) override {
    for (std::int64_t sample = 0; sample < rows_.batch; ++sample) {
      float right = 0, count = 0;
      for (std::int64_t i = 0; i < rows_.per_sample; ++i) {
        const std::int64_t row = sample * rows_.per_sample + i;
        if (!rows_.counts(call.inputs[1], row)) continue;
        right += is_right(call, row) ? 1 : 0;
        count += 1;
      }
      output(call, 0)[sample] = right;
      output(call, 1)[sample] = count;
    }
  }

 private:
  bool is_right(const ForwardCall& call, std::int64_t row) const {
    const float* x = input(call) + row * rows_.classes;
    const std::int64_t label = rows_.target_class(call.inputs[1], row);
    std::int64_t better = 0;
    for (std::int64_t k = 0; k < rows_.classes; ++k) {
      const bool worse = x[k] < x[label] || (x[k] == x[label] && k >= label);
      better += worse ? 0 : 1;
    }
    return better < best_;
  }

  ClassRows rows_;
  std::int64_t best_;
};

std::unique_ptr<Kernel> class_metric_cpu(const KernelRequest& request) {
  const Attributes& attributes = *request.attributes;
  return std::make_unique<ClassMetricCpu>(ClassRows(request), attributes.has("k") ? attributes.integer("k") : 1);
}

OpDef class_metric(const std::string& name, const std::string& doc) {
  OpDef op = metric_of_classes(name, doc);
  op.cost = elementwise_cost<2, 0>;
  op.kernels[DeviceKind::cpu] = class_metric_cpu;
  return op;
}

}  // namespace

OpDef make_accuracy() {
  return class_metric("accuracy", "share of samples (or tokens) whose best class is the target's");
}

OpDef make_top_k() {
  OpDef op = class_metric(kTopKOp, "share of samples (or tokens) whose k best classes hold the target's");
  op.attributes.push_back({.name = "k", .kind = AttributeKind::integer, .doc = "how many classes", .minimum = 2});
  return op;
}

}  // namespace lockstep::ops
