// The counts of class_counts.hpp on a Grid: a group a row finds its classes, then a group a count counts the rows of a
// sample. A label that is no class gives NaN, and the run ends as diverged, because a kernel cannot throw. Class
// indices are floats, which represent integers exactly up to 2^24; of a row that does not count they are -1.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/class_counts/class_counts.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_sample_grid.hpp"

namespace lockstep::ops {

struct RowClassesFunctor {
  ClassTarget target;
  const float* x;             ///< [rows, classes]
  float *predicted, *actual;  ///< [rows]
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    float said = -1, is = -1;
    if (target.counts(row)) {
      said = best_of(group, x + row * target.classes);
      if (target.labels == nullptr) {
        is = best_of(group, target.weights + row * target.classes);
      } else {
        is = target.is_class(target.labels[row]) ? static_cast<float>(target.labels[row]) : __builtin_nanf("");
      }
    }
    float *predicted_to = predicted + row, *actual_to = actual + row;
    group.once([=] {
      *predicted_to = said;
      *actual_to = is;
    });
  }

 private:
  /// The first class with the largest score; NaNs are skipped, except for class 0.
  template <class Group>
  LOCKSTEP_HOST_DEVICE float best_of(Group& group, const float* t) const {
    const float largest = group.maximum(target.classes, [=](std::int64_t k) { return t[k]; });
    const float first = -group.maximum(
        target.classes, [=](std::int64_t k) { return t[k] == largest ? -static_cast<float>(k) : -__builtin_inff(); });
    return t[0] != t[0] ? 0.0F : first;
  }
};

struct CountRowsFunctor {
  const float *predicted, *actual;  ///< [rows]
  float *counts, *counted;          ///< [batch, kClassCounts, classes], [batch]
  std::int64_t per_sample, classes;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t number) const {
    const std::int64_t sample = number / (kClassCounts * classes), which = number / classes % kClassCounts;
    const float of_class = number % classes;
    const float *said = predicted + sample * per_sample, *is = actual + sample * per_sample;
    const float rows = group.sum(per_sample, [=](std::int64_t i) -> float {
      if (is[i] != is[i]) return is[i];
      const bool as_said = which == kActual || said[i] == of_class, as_is = which == kPredicted || is[i] == of_class;
      return as_said && as_is ? 1.0F : 0.0F;
    });
    float* to = counts + number;
    group.once([=] { *to = rows; });
    if (number % (kClassCounts * classes) != 0) return;
    const float all = group.sum(per_sample, [=](std::int64_t i) { return said[i] < 0 ? 0.0F : 1.0F; });
    float* all_to = counted + sample;
    group.once([=] { *all_to = all; });
  }
};

/// Its workspace holds the classes of each row.
template <class Grid>
class ClassCountsGrid final : public Kernel {
 public:
  explicit ClassCountsGrid(const KernelRequest& request) : rows_(request) {}

  std::size_t workspace_bytes() const override { return (2 * rows_.rows()) * sizeof(float); }
  void forward(const ForwardCall& call) override {
    auto *predicted = static_cast<float*>(call.workspace), *actual = predicted + rows_.rows();
    const ClassTarget target(rows_, call.inputs[1]);
    Grid::rows(stream_of(call), rows_.rows(), RowClassesFunctor{target, input(call), predicted, actual});
    Grid::rows(stream_of(call), rows_.batch * kClassCounts * rows_.classes,
               CountRowsFunctor{predicted, actual, output(call, 0), output(call, 1), rows_.per_sample, rows_.classes});
  }

 private:
  ClassRows rows_;
};

template <class Grid>
std::unique_ptr<Kernel> make_class_counts_of(const KernelRequest& request) {
  return make_for_float32(request, [&] { return std::make_unique<ClassCountsGrid<Grid>>(request); });
}

template <class Grid>
std::unique_ptr<Kernel> make_macro_precision_grid(const KernelRequest& request) {
  return make_class_counts_of<Grid>(request);
}

template <class Grid>
std::unique_ptr<Kernel> make_macro_recall_grid(const KernelRequest& request) {
  return make_class_counts_of<Grid>(request);
}

template <class Grid>
std::unique_ptr<Kernel> make_macro_f1_grid(const KernelRequest& request) {
  return make_class_counts_of<Grid>(request);
}

template <class Grid>
std::unique_ptr<Kernel> make_mean_iou_grid(const KernelRequest& request) {
  return make_class_counts_of<Grid>(request);
}

}  // namespace lockstep::ops
