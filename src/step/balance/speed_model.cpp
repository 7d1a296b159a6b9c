#include "step/balance/speed_model.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep::balance {

namespace {

constexpr std::size_t kHistory = 256;
constexpr double kScatterWeight = 0.1;

double median(std::vector<double> values) {
  const auto middle = values.begin() + (values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

bool SpeedModel::is_jump(double mean, double typical) const {
  const auto slower = [&](double value) { return value > tuning_.jump * mean_; };
  const auto faster = [&](double value) { return value * tuning_.jump < mean_; };
  return (slower(mean) && slower(typical)) || (faster(mean) && faster(typical));
}

bool SpeedModel::add(double mean, double typical, bool jumps) {
  history_.push_back(mean);
  if (history_.size() > kHistory) history_.pop_front();
  const bool jump = known() && jumps && is_jump(mean, typical);
  if (jump) window_.clear();
  window_.push_back(mean);
  if (window_.size() > static_cast<std::size_t>(tuning_.window)) window_.pop_front();
  const double middle = median({window_.begin(), window_.end()});
  const bool settled = static_cast<int>(window_.size()) >= 3;
  const double noise = std::max(tuning_.snap, tuning_.snap_scatter * scatter_);
  const bool change = jump || (settled && std::abs(middle / mean_ - 1) > noise);
  age_ = change ? std::min(3, static_cast<int>(window_.size())) : std::min(age_ + 1, tuning_.memory);
  mean_ = change || !known() ? middle : mean_ + (middle - mean_) / age_;
  if (!jump) scatter_ += kScatterWeight * (std::min(std::abs(mean / middle - 1), 3 * scatter_ + 0.01) - scatter_);
  return jump;
}

double SpeedModel::long_mean(int samples) const {
  if (history_.empty()) return mean_;
  const auto count = std::min(history_.size(), static_cast<std::size_t>(std::max(1, samples)));
  double sum = 0;
  for (auto value = history_.end() - count; value != history_.end(); ++value) {
    sum += *value;
  }
  return sum / count;
}

}  // namespace lockstep::balance
