#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/predict.hpp"

namespace lockstep::cli {

std::vector<double> probabilities(const float* logits, std::int64_t count, double temperature) {
  std::vector<double> values(logits, logits + count);
  const double most = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (double& value : values) sum += value = std::exp((value - most) / temperature);
  for (double& value : values) value /= sum;
  return values;
}

std::vector<std::size_t> largest(const std::vector<double>& values, int count) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(std::max(count, 1))));
  return order;
}

}  // namespace lockstep::cli
