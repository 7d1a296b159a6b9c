#include "run/ensemble/combine.hpp"

#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/trained_model.hpp"

namespace lockstep::ensemble {

namespace {

constexpr double kLeast = 1e-12;

}  // namespace

Meaning meaning_of(const OpDef& loss) {
  if (loss.activation.empty()) return Meaning::values;
  return loss.activation == "softmax" ? Meaning::classes : Meaning::probabilities;
}

std::vector<double> read_prediction(Meaning meaning, std::span<const float> prediction) {
  if (meaning == Meaning::classes) return probabilities(prediction);
  std::vector<double> row(prediction.begin(), prediction.end());
  if (meaning == Meaning::probabilities) {
    for (double& logit : row) logit = 1 / (1 + std::exp(-logit));
  }
  return row;
}

std::vector<float> as_prediction(Meaning meaning, std::span<const double> row) {
  std::vector<float> prediction;
  for (const double value : row) {
    const double p = std::max(value, kLeast), rest = std::max(1 - value, kLeast);
    const double raw = meaning == Meaning::values    ? value
                       : meaning == Meaning::classes ? std::log(p)
                                                     : std::log(p / rest);
    prediction.push_back(raw);
  }
  return prediction;
}

Table weighted(const std::vector<Table>& members, const std::vector<double>& weights) {
  LOCKSTEP_CHECK(!members.empty() && members.size() == weights.size(), "a weight for each member");
  Table sum{members[0].width, std::vector<double>(members[0].values.size())};
  for (std::size_t m = 0; m < members.size(); ++m) {
    for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += weights[m] * members[m].values[i];
  }
  return sum;
}

std::vector<double> equal_weights(std::size_t members) {
  return std::vector<double>(members, 1.0 / members);
}

Table vote(Meaning meaning, const std::vector<Table>& members) {
  LOCKSTEP_CHECK(!members.empty() && meaning != Meaning::values, "votes are for classes");
  Table shares{members[0].width, std::vector<double>(members[0].values.size())};
  for (const Table& member : members) {
    for (std::size_t i = 0; i < member.samples(); ++i) {
      const auto row = member.row(i);
      double* const votes = shares.values.data() + i * shares.width;
      if (meaning == Meaning::classes) {
        votes[largest_of(row)] += 1;
      } else {
        for (std::size_t c = 0; c < row.size(); ++c) votes[c] += row[c] > 0.5 ? 1 : 0;
      }
    }
  }
  for (double& share : shares.values) share /= members.size();
  return shares;
}

std::size_t largest_of(std::span<const double> row) {
  return std::max_element(row.begin(), row.end()) - row.begin();
}

}  // namespace lockstep::ensemble
