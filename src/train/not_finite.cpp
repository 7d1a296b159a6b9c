#include "train/not_finite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "train/first_text.hpp"

namespace lockstep::train {

namespace {

std::string not_finite_in(const exec::TensorBlock& block) {
  for (std::size_t i = 0; i < block.size(); ++i) {
    for (const exec::Extent& own : block.own(i)) {
      const auto values = block.at(i, own);
      const auto found = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
      if (found == values.end()) continue;
      return fmt::format("'{}' is {} at element {}", block.name(i), std::isnan(*found) ? "nan" : "infinite",
                         own.begin + (found - values.begin()));
    }
  }
  return "";
}

}  // namespace

std::string not_finite(const exec::TensorBlock& parameters, const exec::TensorBlock& states) {
  const std::string found = not_finite_in(parameters);
  return found.empty() ? not_finite_in(states) : found;
}

std::string not_finite_on_any_rank(const optim::Model& model, Communicator& communicator,
                                   std::chrono::milliseconds timeout) {
  return first_text(communicator, {"finite parameters", 0, timeout},
                    [&] { return not_finite(model.parameters, model.states); });
}

}  // namespace lockstep::train
