#include "backend/gpu/plan_parts.hpp"

#include <fmt/format.h>

namespace lockstep::backend {

namespace {

constexpr std::string_view kOutput = "output: ", kInput = "; input's gradient: ", kWeight = "; weight's gradient: ";

}  // namespace

std::string PlanParts::text() const {
  return fmt::format("{}{}{}{}{}{}", kOutput, output, kInput, input_gradient, kWeight, weight_gradient);
}

PlanParts PlanParts::of(const std::string& text) {
  const auto input = text.find(kInput), weight = text.find(kWeight);
  if (!text.starts_with(kOutput) || input == std::string::npos || weight == std::string::npos) return {};
  const std::size_t first = kOutput.size(), second = input + kInput.size(), third = weight + kWeight.size();
  return {text.substr(first, input - first), text.substr(second, weight - second), text.substr(third)};
}

Error plan_not_there(const GpuPlace& place, const WantedPlan& wanted) {
  return Error(ExitCode::usage,
               fmt::format("rank {} on {}: '{}': expected the algorithm that rank 0 chose ({}), found that the library "
                           "does not propose it here; use one kind of GPU and one version of the libraries, or set "
                           "exact: preferred",
                           place.rank, place.host, wanted.node, wanted.name));
}

}  // namespace lockstep::backend
