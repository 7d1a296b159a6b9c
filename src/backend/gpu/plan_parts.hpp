// The text of a layer's plan (Kernel::plan()): what computes each of its products.
#pragma once

#include <string>
#include <string_view>

#include "backend/gpu/gpu_place.hpp"

namespace lockstep::backend {

inline constexpr std::string_view kOwnKernel = "own kernel";  ///< no library's

struct PlanParts {
  std::string output, input_gradient, weight_gradient;

  /// "output: A; input's gradient: B; weight's gradient: C"
  [[nodiscard]] std::string text() const;
  /// Of text(); what it does not say is empty.
  [[nodiscard]] static PlanParts of(const std::string& text);
};

/// Rank 0 chose `wanted` of the library's algorithms, which the library does not propose here: Error(usage).
[[nodiscard]] Error plan_not_there(const GpuPlace& place, const std::string& node, const std::string& wanted);

}  // namespace lockstep::backend
