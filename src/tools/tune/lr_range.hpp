// The learning-rate range test: one training whose rate rises from step to step, and what its losses say. After Smith,
// "Cyclical Learning Rates for Training Neural Networks", 2017.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/tune/probe.hpp"

namespace lockstep::tune {

struct LrRange {
  double from = 1e-6, to = 1;
  std::int64_t steps = 100;
};

struct LrPoint {
  double rate = 0, loss = 0;
  double smoothed = 0;  ///< mean of the losses so far, the newer the heavier, without the pull of a first value
};

struct LrVerdict {
  std::vector<LrPoint> points;     ///< up to where the loss is out of hand: four times the lowest, or not a number
  std::optional<double> lowest;    ///< rate at the lowest smoothed loss; none: the loss never fell
  std::optional<double> steepest;  ///< rate before that at which the smoothed loss falls fastest, by factor of the rate
  bool diverged = false;
};

/// The rate of each step of the test, a constant factor from one to the next.
[[nodiscard]] std::vector<double> rates_of(const LrRange& range);
/// What makes train take these rates.
[[nodiscard]] std::vector<std::string> overrides_of(const LrRange& range);
/// `losses`: by step, as many as there are.
[[nodiscard]] LrVerdict judge(const LrRange& range, const std::vector<double>& losses);

}  // namespace lockstep::tune
