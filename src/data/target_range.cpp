#include "data/target_range.hpp"

namespace lockstep::data {

namespace {

/// Elements `first` ... `first + count - 1` of each row, added up.
void measure_range(TargetRange& range, std::span<const double> numbers, std::size_t width, std::size_t first,
                   std::size_t count, const std::function<std::string(std::size_t)>& name) {
  std::size_t lowest = 0, highest = 0;
  for (std::size_t row = 0; row * width < numbers.size(); ++row) {
    double value = 0;
    for (const double number : numbers.subspan(row * width + first, count)) value += number;
    if (value < range.lowest) {
      range.lowest = value;
      lowest = row;
    }
    if (value > range.highest) {
      range.highest = value;
      highest = row;
    }
  }
  range.lowest_at = name(lowest);
  range.highest_at = name(highest);
}

}  // namespace

std::vector<TargetRange> target_ranges(const std::vector<Feature>& features, const std::vector<std::string>& columns,
                                       std::span<const double> numbers,
                                       const std::function<std::string(std::size_t)>& name) {
  std::vector<TargetRange> ranges;
  if (numbers.empty()) return ranges;
  std::size_t first = 0;
  for (const Feature& feature : features) {
    if (feature.kind != Feature::Kind::tensor) continue;
    const std::size_t count = feature.spec.elements();
    for (std::size_t i = first; i < first + count; ++i) {
      measure_range(ranges.emplace_back(TargetRange{feature.name, columns.at(i)}), numbers, columns.size(), i, 1, name);
    }
    if (count > 1)
      measure_range(ranges.emplace_back(TargetRange{feature.name, ""}), numbers, columns.size(), first, count, name);
    first += count;
  }
  return ranges;
}

}  // namespace lockstep::data
