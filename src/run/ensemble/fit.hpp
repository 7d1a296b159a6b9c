// Weights of an ensemble's members, fitted on samples with targets: not negative, adding up to 1. Pure and
// deterministic: the start, the order of all sums and the end are fixed.
#pragma once

#include <vector>

#include "run/ensemble/combine.hpp"

namespace lockstep::ensemble {

/// What a set's samples should have been predicted as: class numbers, or [samples, width] values.
struct Targets {
  std::vector<std::int32_t> classes;  ///< Meaning::classes: by sample; one that is no class is ignored
  std::vector<double> values;         ///< otherwise: by sample and element
  std::vector<double> units = {};     ///< Meaning::values: what errors of each element are measured in; empty: 1
};

/// The weights with the largest likelihood of the targets under the mixture sum_m w_m p_m, for Meaning::classes and
/// probabilities. Its logarithm is concave in w, so any local maximum is the global one. By expectation maximisation:
/// w_m becomes the mean over the targets t of w_m p_m(t) / sum_k w_k p_k(t) (Dempster, Laird and Rubin, "Maximum
/// Likelihood from Incomplete Data via the EM Algorithm", 1977), from equal weights, until none changes by more than
/// 1e-9, at most 10,000 times.
[[nodiscard]] std::vector<double> fit_likelihood(Meaning meaning, const std::vector<Table>& members,
                                                 const Targets& targets);

/// The weights with the smallest squared error, in its units, of the weighted mean (Breiman, "Stacked Regressions",
/// 1996, with weights that add up to 1). By gradient descent from equal weights, of step 1 / trace, each step projected
/// onto the weights that are allowed (Duchi, Shalev-Shwartz, Singer and Chandra, "Efficient Projections onto the
/// l1-Ball", 2008), until none changes by more than 1e-9, at most 100,000 times.
[[nodiscard]] std::vector<double> fit_squared_error(const std::vector<Table>& members, const Targets& targets);

/// The nearest point, in squared distance, whose elements are not negative and add up to 1.
[[nodiscard]] std::vector<double> onto_simplex(std::vector<double> point);

}  // namespace lockstep::ensemble
