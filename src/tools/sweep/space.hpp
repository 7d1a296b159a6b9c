// The search space: values of parameters, drawn from or laid out by their distributions. Pure.
//
// A value is JSON text, as an override of the job takes it. Real numbers are rounded to six significant digits, so that
// they are the same on every machine, whatever its log() and exp() do to the last bit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/sweep.hpp"

namespace lockstep::sweep {

struct Setting {
  std::string path, value;
  bool operator==(const Setting&) const = default;
};
/// In the order of the sweep file; parameters whose conditions do not hold are absent.
using Settings = std::vector<Setting>;

/// The value of a parameter; nullptr if it is absent.
[[nodiscard]] const std::string* value_of(const Settings& settings, const std::string& path);

/// Whether a parameter's conditions hold, given the values of those further up.
[[nodiscard]] bool is_active(const SweepParameter& parameter, const Settings& settings);

/// The value at a quantile of the parameter's distribution, from 0 up to but not including 1.
[[nodiscard]] std::string value_at(const SweepParameter& parameter, double quantile);
/// The middle of the quantiles that give this value; nullopt if none does.
[[nodiscard]] std::optional<double> quantile_of(const SweepParameter& parameter, const std::string& value);

/// A number times `factor`, within the parameter's distribution: the nearest of its values, and if that is the number
/// itself of `integers`, the next one in that direction. A choice stays.
[[nodiscard]] std::string scaled(const SweepParameter& parameter, const std::string& value, double factor);

/// Values for all active parameters, each at the quantile that `quantile` gives for it, asked in the file's order.
[[nodiscard]] Settings draw(const std::vector<SweepParameter>& parameters,
                            const std::function<double(const SweepParameter&)>& quantile);

/// Uniform in [0, 1): a function of its arguments only, so neither of other parameters nor of the order of calls.
[[nodiscard]] double uniform(std::uint64_t seed, const std::string& path, std::uint64_t trial, std::uint32_t draw = 0);

/// The values of a parameter in a grid.
[[nodiscard]] std::vector<std::string> grid_values(const SweepParameter& parameter);
/// All points of the grid; the last parameter varies fastest. Throws Error(configuration) if there are more than
/// 100,000.
[[nodiscard]] std::vector<Settings> grid(const std::vector<SweepParameter>& parameters);

/// "learning_rate=0.1", as the command line takes it.
[[nodiscard]] std::vector<std::string> overrides(const Settings& settings);
/// "learning_rate 0.1, optimizer adam"
[[nodiscard]] std::string text(const Settings& settings);

}  // namespace lockstep::sweep
