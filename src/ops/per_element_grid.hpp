// The target of what goes element by element, on a Grid. A label that is neither 0 nor 1 is NaN, and the run ends as
// diverged: a kernel cannot throw.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "ops/per_element.hpp"

namespace lockstep::ops {

/// Either `values` or `labels` is the target, the other is null; labels only where it is binary.
template <bool kBinary>
struct ElementTarget {
  const float* values;
  const std::int32_t* labels;

  ElementTarget(const ElementRows& rows, const void* target)
      : values(rows.labels ? nullptr : static_cast<const float*>(target)),
        labels(rows.labels ? static_cast<const std::int32_t*>(target) : nullptr) {}

  LOCKSTEP_HOST_DEVICE float at(std::int64_t i) const {
    if (!kBinary || labels == nullptr) return values[i];
    return labels[i] == 0 ? 0.0F : labels[i] == 1 ? 1.0F : __builtin_nanf("");
  }
};

}  // namespace lockstep::ops
