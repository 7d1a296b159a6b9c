#include "train/not_finite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "comm/transport/point_to_point.hpp"
#include "comm/transport/work_together.hpp"

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
  const Operation operation{"finite parameters", 0, timeout};
  std::string own;
  const auto found = comm::work_together(communicator, operation, [&](comm::WorkProgress& /*at once*/) {
    own = not_finite(model.parameters, model.states);
    return !own.empty();
  });
  const auto first = std::find(found.begin(), found.end(), true);
  if (first == found.end()) return "";
  return comm::broadcast_text(communicator, std::move(own), static_cast<int>(first - found.begin()), operation);
}

}  // namespace lockstep::train
