// accuracy and top_k on a Grid, one group per row of scores; the rules are those of class_metric_op.cpp. A label that
// is no class gives NaN, and the run ends as diverged, because a kernel cannot throw. Intermediate class indices are
// floats, which represent integers exactly up to 2^24.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_sample_grid.hpp"

namespace lockstep::ops {

/// 1 for a row whose target is among the `best` classes, else 0.
struct ClassMetricFunctor {
  ClassTarget target;
  const float* x;  ///< [rows, classes]
  float* right;    ///< [rows]
  float best;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    if (!target.counts(row)) return;
    const std::int64_t label = target.labels == nullptr ? heaviest(group, row) : target.labels[row];
    float result = __builtin_nanf("");
    if (target.is_class(label)) {
      const float* xr = x + row * target.classes;
      const float better = group.sum(target.classes, [=](std::int64_t k) {
        return xr[k] < xr[label] || (xr[k] == xr[label] && k >= label) ? 0.0F : 1.0F;
      });
      result = better < best ? 1.0F : 0.0F;
    }
    float* to = right + row;
    group.once([=] { *to = result; });
  }

 private:
  /// The first class with the largest weight; NaNs are skipped, except for class 0.
  template <class Group>
  LOCKSTEP_HOST_DEVICE std::int64_t heaviest(Group& group, std::int64_t row) const {
    const float* t = target.weights + row * target.classes;
    if (t[0] != t[0]) return 0;
    const float largest = group.maximum(target.classes, [=](std::int64_t k) { return t[k]; });
    return static_cast<std::int64_t>(-group.maximum(
        target.classes, [=](std::int64_t k) { return t[k] == largest ? -static_cast<float>(k) : -__builtin_inff(); }));
  }
};

/// Its workspace holds each row's value.
template <class Grid>
class ClassMetricGrid final : public Kernel {
 public:
  ClassMetricGrid(const ClassRows& rows, std::int64_t best) : rows_(rows), best_(best) {}

  std::size_t workspace_bytes() const override { return rows_.rows() * sizeof(float); }
  void forward(const ForwardCall& call) override {
    const ClassTarget target(rows_, call.inputs[1]);
    auto* right = static_cast<float*>(call.workspace);
    Grid::rows(stream_of(call), rows_.rows(), ClassMetricFunctor{target, input(call), right, best_});
    Grid::rows(stream_of(call), rows_.batch,
               SampleSumFunctor{target, right, output(call, 0), output(call, 1), rows_.per_sample});
  }

 private:
  ClassRows rows_;
  float best_;
};

template <class Grid>
std::unique_ptr<Kernel> make_class_metric_of(const KernelRequest& request, std::int64_t best) {
  return make_for_float32(request, [&] { return std::make_unique<ClassMetricGrid<Grid>>(ClassRows(request), best); });
}

template <class Grid>
std::unique_ptr<Kernel> make_accuracy_grid(const KernelRequest& request) {
  return make_class_metric_of<Grid>(request, 1);
}

template <class Grid>
std::unique_ptr<Kernel> make_top_k_grid(const KernelRequest& request) {
  return make_class_metric_of<Grid>(request, request.attributes->integer("k"));
}

}  // namespace lockstep::ops
