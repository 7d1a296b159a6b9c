#include "device/gpu/layer_algorithms.hpp"

#include <fmt/format.h>

namespace lockstep::device {

namespace {

constexpr std::string_view kOutput = "output: ", kInput = "; input's gradient: ", kWeight = "; weight's gradient: ";

}  // namespace

std::string LayerAlgorithms::text() const {
  std::string text = fmt::format("{}{}", kOutput, output);
  if (!input_gradient.empty()) text += fmt::format("{}{}", kInput, input_gradient);
  if (!weight_gradient.empty()) text += fmt::format("{}{}", kWeight, weight_gradient);
  return text;
}

LayerAlgorithms LayerAlgorithms::of(const std::string& text) {
  if (!text.starts_with(kOutput)) return {};
  const auto part = [&](std::string_view title) -> std::string {
    const auto found = text.find(title);
    if (found == std::string::npos) return "";
    const std::size_t start = found + title.size();
    return text.substr(start, text.find(';', start) - start);
  };
  return {part(kOutput), part(kInput), part(kWeight)};
}

Error algorithm_not_there(const GpuPlace& place, const WantedAlgorithm& wanted) {
  return Error(ExitCode::usage,
               fmt::format("rank {} on {}: '{}': expected the algorithm that rank 0 chose ({}), found that the library "
                           "does not propose it here; use one kind of GPU and one version of the libraries, or set "
                           "exact: preferred",
                           place.rank, place.host, wanted.node, wanted.name));
}

}  // namespace lockstep::device
