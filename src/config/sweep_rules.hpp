// Rules that only sweep files need: values of any type, conditions, a map of parameters.
#pragma once

#include <string>
#include <vector>

#include "config/section.hpp"
#include "config/sweep.hpp"

namespace lockstep::config {

[[nodiscard]] Is<SweepOptions> sweep_section(const Catalogue& catalogue);

/// A value of any type, kept as JSON on one line.
[[nodiscard]] Is<std::string> any_value();
/// {optimizer: sgd} or {optimizer: [sgd, adam]}
[[nodiscard]] Is<std::vector<SweepCondition>> conditions();
/// Paths of a job and the distributions of their values.
[[nodiscard]] Is<std::vector<SweepParameter>> parameters(Is<SweepParameter> parameter);

/// Reports a problem at a key of a parameter, or at `inner` below that key if it is not empty. Paths contain dots, so
/// Scope::problem() cannot find them.
void at_parameter(const Scope& scope, const SweepParameter& parameter, const std::string& key, const std::string& inner,
                  std::string message);

}  // namespace lockstep::config
