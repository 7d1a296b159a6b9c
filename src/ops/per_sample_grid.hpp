// What losses and metrics of classes share on a Grid: the target, and a sample's sum over its rows.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "ops/per_sample.hpp"

namespace lockstep::ops {

/// Either `labels` or `weights` is the target, the other is null.
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

  [[nodiscard]] LOCKSTEP_HOST_DEVICE bool counts(std::int64_t row) const {
    return labels == nullptr || !ignores || labels[row] != ignored;
  }
  [[nodiscard]] LOCKSTEP_HOST_DEVICE bool is_class(std::int64_t label) const { return label >= 0 && label < classes; }
};

/// A sample's rows that count, added in order: their values, and how many they are.
struct SampleSumBody {
  ClassTarget target;
  const float* values;  ///< [rows]
  float *sum, *count;   ///< [batch]
  std::int64_t per_sample;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t sample) const {
    float total = 0, counted = 0;
    for (std::int64_t row = sample * per_sample; row < (sample + 1) * per_sample; ++row) {
      if (!target.counts(row)) continue;
      total += values[row];
      counted += 1;
    }
    sum[sample] = total;
    count[sample] = counted;
  }
};

}  // namespace lockstep::ops
