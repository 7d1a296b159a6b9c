#include "tools/tune/lr_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep::tune {

namespace {

constexpr double kKept = 0.9;      // of the mean so far, in the next one
constexpr double kOutOfHand = 4;   // times the lowest loss: the test is over
constexpr std::size_t kSlope = 3;  // steps to each side over which a slope is taken

double factor_of(const LrRange& range) {
  return range.steps > 1 ? std::pow(range.to / range.from, 1.0 / (range.steps - 1)) : 1;
}

}  // namespace

std::vector<double> rates_of(const LrRange& range) {
  std::vector<double> rates;
  for (std::int64_t i = 0; i < range.steps; ++i) {
    rates.push_back(range.from * std::pow(factor_of(range), static_cast<double>(i)));
  }
  return rates;
}

std::vector<std::string> overrides_of(const LrRange& range) {
  return {fmt::format("learning_rate={{peak: {}, schedule: {{exponential: {{factor: {}, every: 1 step}}}}}}",
                      range.from, factor_of(range))};
}

LrVerdict judge(const LrRange& range, const std::vector<double>& losses) {
  LrVerdict verdict;
  const std::vector<double> rates = rates_of(range);
  double mean = 0, weight = 0;
  std::size_t lowest = 0;
  for (std::size_t i = 0; i < std::min(rates.size(), losses.size()); ++i) {
    mean = kKept * mean + (1 - kKept) * losses[i];
    weight = kKept * weight + (1 - kKept);
    const double smoothed = mean / weight;
    if (!std::isfinite(losses[i]) || (i > 0 && smoothed > kOutOfHand * verdict.points[lowest].smoothed)) {
      verdict.diverged = true;
      break;
    }
    verdict.points.push_back({rates[i], losses[i], smoothed});
    if (smoothed < verdict.points[lowest].smoothed) lowest = i;
  }
  if (lowest == 0) return verdict;
  verdict.lowest = verdict.points[lowest].rate;
  double fastest = 0;
  for (std::size_t i = kSlope; i + kSlope <= lowest; ++i) {
    const double fall = verdict.points[i - kSlope].smoothed - verdict.points[i + kSlope].smoothed;
    if (fall > fastest) {
      fastest = fall;
      verdict.steepest = verdict.points[i].rate;
    }
  }
  return verdict;
}

}  // namespace lockstep::tune
