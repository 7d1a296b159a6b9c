#include "cli/sampling.hpp"

#include <algorithm>
#include <numeric>

#include "lockstep/trained_model.hpp"

namespace lockstep::cli {

std::vector<std::size_t> largest(const std::vector<double>& values, int count) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(std::max(count, 1))));
  return order;
}

std::int32_t draw_token(std::span<const float> scores, const SamplingOptions& options, RandomStream& random) {
  if (options.temperature == 0) {
    return std::max_element(scores.begin(), scores.end()) - scores.begin();
  }
  const auto weights = probabilities(scores, options.temperature);
  auto candidates = largest(weights, options.top_k > 0 ? options.top_k : static_cast<int>(scores.size()));
  double sum = 0;
  for (const std::size_t i : candidates) sum += weights[i];
  if (options.top_p < 1) {
    double kept = 0;
    std::size_t count = 0;
    while (count < candidates.size() && (count == 0 || kept < options.top_p * sum))
      kept += weights[candidates[count++]];
    candidates.resize(count);
    sum = kept;
  }
  double rest = random.unit() * sum;
  for (const std::size_t i : candidates) {
    rest -= weights[i];
    if (rest < 0) return i;
  }
  return candidates.back();
}

std::string StopText::add(const std::string& text) {
  if (stopped_) return "";
  held_ += text;
  std::size_t end = std::string::npos;
  for (const auto& sequence : sequences_) end = std::min(end, held_.find(sequence));
  stopped_ = end != std::string::npos;
  if (!stopped_) {
    // The longest end of the text that begins a sequence.
    end = held_.size();
    for (const auto& sequence : sequences_) {
      const std::size_t longest = std::min(sequence.size() - 1, held_.size());
      for (std::size_t length = longest; length > held_.size() - end; --length) {
        if (held_.ends_with(sequence.substr(0, length))) end = held_.size() - length;
      }
    }
  }
  std::string shown = held_.substr(0, end);
  held_.erase(0, end);
  return shown;
}

}  // namespace lockstep::cli
