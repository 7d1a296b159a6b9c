#include "run/train/not_finite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"
#include "run/train/first_text.hpp"

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

void require_finite(const DataSet& set, std::span<const float> numbers, const char* what, const std::string& model) {
  const std::size_t samples = set.size();
  const std::size_t width = samples == 0 ? 0 : numbers.size() / samples;
  std::int64_t count = 0, first = 0;
  float found = 0;
  for (std::size_t id = 0; id < samples; ++id) {
    const auto own = numbers.subspan(id * width, width);
    const auto bad = std::find_if(own.begin(), own.end(), [](float value) { return !std::isfinite(value); });
    if (bad == own.end() || ++count > 1) continue;
    first = id;
    found = *bad;
  }
  if (count == 0) return;
  throw Error(
      ExitCode::diverged,
      fmt::format("{}: expected finite {}, found {} for {} ({} of {} samples); look there for values far beyond "
                  "those of the training set",
                  model, what, std::isnan(found) ? "nan" : "an infinite one", set.name(first), count, samples));
}

}  // namespace lockstep::train
