// What several models predict of the same samples, and ways to make one prediction of them. Pure; everything is in
// double and added in order of members, so it depends on neither ranks nor threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/op.hpp"

namespace lockstep::ensemble {

/// What the numbers of a prediction are, by the activation of the job's loss (OpDef::activation): probabilities of
/// classes, of which one is true (softmax), probabilities by themselves (sigmoid), or values (none).
enum class Meaning : std::uint8_t { classes, probabilities, values };
[[nodiscard]] Meaning meaning_of(const OpDef& loss);

/// [samples, width], by sample.
struct Table {
  std::size_t width = 0;
  std::vector<double> values;

  std::size_t samples() const { return width == 0 ? 0 : values.size() / width; }
  std::span<const double> row(std::size_t sample) const { return std::span(values).subspan(sample * width, width); }
};

/// A model's raw prediction of a sample as probabilities (softmax, sigmoid) or values.
[[nodiscard]] std::vector<double> read_prediction(Meaning meaning, std::span<const float> prediction);
/// The inverse, up to a constant that softmax does not see: what the job's loss and metrics take. A probability below
/// 1e-12 counts as that.
[[nodiscard]] std::vector<float> as_prediction(Meaning meaning, std::span<const double> row);

/// sum of weights[m] * members[m].
[[nodiscard]] Table weighted(const std::vector<Table>& members, const std::vector<double>& weights);
/// Weights 1 / M.
[[nodiscard]] std::vector<double> equal_weights(std::size_t members);
/// The share of members whose class (the largest probability; of equal ones the first) it is; of probabilities by
/// themselves the share of members above 1/2. Not for values.
[[nodiscard]] Table vote(Meaning meaning, const std::vector<Table>& members);

/// The index of the largest value; of equal ones the first.
[[nodiscard]] std::size_t largest_of(std::span<const double> row);

}  // namespace lockstep::ensemble
