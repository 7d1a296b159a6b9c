// The text of Kernel::algorithms(): which algorithm computes each matrix product of a layer.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::device {

inline constexpr std::string_view kOwnKernel = "own kernel";  ///< no library's

struct LayerAlgorithms {
  std::string output, input_gradient, weight_gradient;

  /// "output: A; input's gradient: B; weight's gradient: C"; what is empty is skipped. Names have no semicolon.
  [[nodiscard]] std::string text() const;
  /// Of text(); what it does not say is empty.
  [[nodiscard]] static LayerAlgorithms of(const std::string& text);
};

}  // namespace lockstep::device
