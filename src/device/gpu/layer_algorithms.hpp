// The text of a layer's plan (Kernel::algorithms()): what computes each of its products.
#pragma once

#include <string>
#include <string_view>

#include "device/gpu/gpu_place.hpp"

namespace lockstep::device {

inline constexpr std::string_view kOwnKernel = "own kernel";  ///< no library's

struct LayerAlgorithms {
  std::string output, input_gradient, weight_gradient;

  /// "output: A; input's gradient: B; weight's gradient: C"; what is empty is left out. Names have no semicolon.
  [[nodiscard]] std::string text() const;
  /// Of text(); what it does not say is empty.
  [[nodiscard]] static LayerAlgorithms of(const std::string& text);
};

/// The algorithm of a product that rank 0 chose.
struct WantedAlgorithm {
  std::string node;  ///< whose product it is
  std::string name;  ///< empty: any
};

/// The library does not propose it here: Error(usage).
[[nodiscard]] Error algorithm_not_there(const GpuPlace& place, const WantedAlgorithm& wanted);

}  // namespace lockstep::device
