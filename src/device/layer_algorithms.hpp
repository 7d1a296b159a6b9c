// The text of Kernel::algorithms(): the algorithm of each matrix product of a layer.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::device {

inline constexpr std::string_view kOwnKernel = "own kernel";  ///< not a library's

struct LayerAlgorithms {
  std::string output, input_gradient, weight_gradient;

  /// "output: A; input's gradient: B; weight's gradient: C"; empty ones are skipped. Names must not contain semicolons.
  std::string text() const;
  /// Parses text(); what it does not mention is empty.
  [[nodiscard]] static LayerAlgorithms of(const std::string& text);
};

}  // namespace lockstep::device
