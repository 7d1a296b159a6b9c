// Which parameters of a sweep mattered.
#pragma once

#include <optional>
#include <vector>

namespace lockstep::sweep {

/// Part of the variance of `values`, by rank, that is between groups of equal settings rather than within them: 0 to 1
/// (eta squared), less what as many groups would explain of noise (epsilon squared, Kelley 1935; never below 0).
/// `group`: by value; -1: the trial does not have the parameter, and is left out. nullopt: there are fewer than two
/// groups, or no more values than groups.
[[nodiscard]] std::optional<double> explained_variance(const std::vector<int>& group,
                                                       const std::vector<double>& values);

/// Groups of about equal size for a parameter of numbers, by their order: at most five, each of at least four numbers;
/// equal numbers are in one group.
[[nodiscard]] std::vector<int> groups_of_numbers(const std::vector<double>& numbers);

}  // namespace lockstep::sweep
