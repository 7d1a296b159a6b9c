#include "ops/auc/area_under_curve.hpp"

#include <algorithm>
#include <cstddef>

namespace lockstep::ops {

/// By the sum of the positives' ranks (Mann and Whitney, 1947); equal scores share the mean of their ranks.
std::optional<double> area_under_curve(std::vector<std::pair<double, bool>> scores) {
  std::sort(scores.begin(), scores.end());
  double positives = 0, ranks = 0;
  for (std::size_t i = 0, end = 0; i < scores.size(); i = end) {
    double equal_positives = 0;
    for (end = i; end < scores.size() && scores[end].first == scores[i].first; ++end) {
      equal_positives += scores[end].second ? 1 : 0;
    }
    positives += equal_positives;
    ranks += equal_positives * (i + 1 + end) / 2;
  }
  const double negatives = scores.size() - positives;
  if (positives == 0 || negatives == 0) return std::nullopt;
  return (ranks - positives * (positives + 1) / 2) / (positives * negatives);
}

}  // namespace lockstep::ops
