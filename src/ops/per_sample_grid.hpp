// Shared by losses and metrics of classes on a Grid: the target, and a sample's sum over its rows.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "ops/per_sample.hpp"

namespace lockstep::ops {

/// The target is either `labels` or `weights`; the other is null.
struct ClassTarget {
  const std::int32_t* labels;  ///< [rows]
  const float* weights;        ///< [rows, classes]
  std::int64_t classes;
  std::int32_t ignored;
  bool ignores;

  ClassTarget(const ClassRows& rows, const void* target)
      : labels(rows.soft ? nullptr : static_cast<const std::int32_t*>(target)),
        weights(rows.soft ? static_cast<const float*>(target) : nullptr),
        classes(rows.classes),
        ignored(rows.ignored_index),
        ignores(rows.ignores) {}

  LOCKSTEP_HOST_DEVICE bool counts(std::int64_t row) const {
    return labels == nullptr || !ignores || labels[row] != ignored;
  }
  LOCKSTEP_HOST_DEVICE bool is_class(std::int64_t label) const { return label >= 0 && label < classes; }
};

/// Sums a sample's rows that count: their values, in lanes, and their number. One group per sample.
struct SampleSumFunctor {
  ClassTarget target;
  const float* values;  ///< [rows]
  float *sum, *count;   ///< [batch]
  std::int64_t per_sample;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t sample) const {
    const ClassTarget of = target;
    const std::int64_t first = sample * per_sample;
    const float* from = values;
    const float total =
        group.sum(per_sample, [=](std::int64_t i) { return of.counts(first + i) ? from[first + i] : 0.0F; });
    const float counted = group.sum(per_sample, [=](std::int64_t i) { return of.counts(first + i) ? 1.0F : 0.0F; });
    float *sum_to = sum + sample, *count_to = count + sample;
    group.once([=] {
      *sum_to = total;
      *count_to = counted;
    });
  }
};

}  // namespace lockstep::ops
