#include "device/layer_algorithms.hpp"

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

}  // namespace lockstep::device
