#include "run/ensemble/calibration.hpp"

#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"

namespace lockstep::ensemble {

namespace {

void put(Calibration& calibration, double confidence, bool right) {
  const double bins = calibration.bins.size();
  const double index = std::clamp(std::ceil(confidence * bins) - 1, 0.0, bins - 1);
  Bin& bin = calibration.bins[index];
  ++bin.count;
  bin.confidence += confidence;
  bin.accuracy += right ? 1 : 0;
}

double difference(Meaning meaning, const Table& a, const Table& b) {
  double sum = 0;
  if (meaning == Meaning::classes) {
    for (std::size_t i = 0; i < a.samples(); ++i) sum += largest_of(a.row(i)) != largest_of(b.row(i)) ? 1 : 0;
    return sum / (std::max<std::size_t>(a.samples(), 1));
  }
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double apart = a.values[i] - b.values[i];
    sum += meaning == Meaning::values ? apart * apart : (a.values[i] > 0.5) != (b.values[i] > 0.5) ? 1 : 0;
  }
  const double mean = sum / (std::max<std::size_t>(a.values.size(), 1));
  return meaning == Meaning::values ? std::sqrt(mean) : mean;
}

}  // namespace

Calibration calibration_of(Meaning meaning, const Table& predicted, const Targets& targets, int bins) {
  LOCKSTEP_CHECK(meaning != Meaning::values && bins > 0, "calibration is of probabilities");
  Calibration calibration;
  for (int i = 0; i < bins; ++i) {
    calibration.bins.push_back({.low = static_cast<double>(i) / bins, .high = static_cast<double>(i + 1) / bins});
  }
  for (std::size_t i = 0; meaning == Meaning::classes && i < predicted.samples(); ++i) {
    const auto row = predicted.row(i);
    const std::size_t best = largest_of(row), target = targets.classes.at(i);
    if (target < row.size()) put(calibration, row[best], target == best);
  }
  for (std::size_t i = 0; meaning == Meaning::probabilities && i < predicted.values.size(); ++i) {
    const double p = predicted.values[i];
    put(calibration, std::max(p, 1 - p), (p > 0.5) == (targets.values.at(i) > 0.5));
  }
  double all = 0;
  for (const Bin& bin : calibration.bins) all += bin.count;
  for (Bin& bin : calibration.bins) {
    if (bin.count == 0) continue;
    const double count = bin.count;
    calibration.error += std::fabs(bin.accuracy - bin.confidence) / all;
    bin.confidence /= count;
    bin.accuracy /= count;
  }
  return calibration;
}

std::vector<double> disagreement(Meaning meaning, const std::vector<Table>& members) {
  std::vector<double> pairs(members.size() * members.size());
  for (std::size_t a = 0; a < members.size(); ++a) {
    for (std::size_t b = a + 1; b < members.size(); ++b) {
      pairs[a * members.size() + b] = pairs[b * members.size() + a] = difference(meaning, members[a], members[b]);
    }
  }
  return pairs;
}

double mean_disagreement(const std::vector<double>& pairs, std::size_t members) {
  double sum = 0;
  for (const double value : pairs) sum += value;
  return members < 2 ? 0 : sum / (members * (members - 1));
}

}  // namespace lockstep::ensemble
