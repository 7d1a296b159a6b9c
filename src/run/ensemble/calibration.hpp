// How far confidence and accuracy agree, and how far members differ. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "run/ensemble/fit.hpp"

namespace lockstep::ensemble {

/// Predictions whose confidence is in (low, high]; those of 0 are in the first bin.
struct Bin {
  double low = 0, high = 0;
  std::int64_t count = 0;
  double confidence = 0, accuracy = 0;  ///< means; 0 without predictions
};

/// The expected calibration error: over bins of equal width, the mean of |accuracy - confidence|, weighted by count
/// (Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural Networks", 2017).
struct Calibration {
  double error = 0;
  std::vector<Bin> bins;
};

/// Confidence is the probability of what is predicted: of the likeliest class, or, for Meaning::probabilities, whose
/// elements count one by one, of the likelier of yes and no. Not for values.
[[nodiscard]] Calibration calibration_of(Meaning meaning, const Table& predicted, const Targets& targets, int bins);

/// [members, members], by row, symmetric, 0 on the diagonal: the share of samples of which two members predict another
/// class (for Meaning::probabilities, of elements); for values, the root of their mean squared difference.
[[nodiscard]] std::vector<double> disagreement(Meaning meaning, const std::vector<Table>& members);

/// The mean over all pairs; 0 for one member.
[[nodiscard]] double mean_disagreement(const std::vector<double>& pairs, std::size_t members);

}  // namespace lockstep::ensemble
