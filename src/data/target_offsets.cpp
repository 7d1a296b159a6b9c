#include "data/target_offsets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep::data {

namespace {

struct Extremes {
  double lowest = 0, highest = 0;
  double size() const { return std::max(std::abs(lowest), std::abs(highest)); }
  double spread() const { return highest - lowest; }
};

Extremes extremes_of(std::span<const double> values, std::size_t width, std::size_t column) {
  Extremes found{values[column], values[column]};
  for (std::size_t i = column; i < values.size(); i += width) {
    found.lowest = std::min(found.lowest, values[i]);
    found.highest = std::max(found.highest, values[i]);
  }
  return found;
}

}  // namespace

std::vector<double> target_offsets(std::span<const double> values, std::size_t width) {
  constexpr double kFar = 64;  // fp32 then holds differences to 2^-18 of the largest
  std::vector<double> offsets(width);
  for (std::size_t column = 0; column < width && !values.empty(); ++column) {
    const Extremes of = extremes_of(values, width, column);
    if (of.spread() > 0 && of.size() > std::max(1.0, kFar * of.spread())) offsets[column] = of.lowest;
  }
  return offsets;
}

std::vector<float> less_offsets(std::span<const double> values, const std::vector<double>& offsets) {
  std::vector<float> rounded;
  rounded.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    rounded.push_back(values[i] - offsets[i % offsets.size()]);
  }
  return rounded;
}

std::vector<double> offsets_of(const std::vector<Feature>& features, std::size_t numbers) {
  std::vector<double> offsets;
  for (const Feature& feature : features) {
    if (feature.kind != Feature::Kind::tensor) continue;
    auto of_feature = feature.offsets;
    of_feature.resize(feature.spec.elements());
    offsets.insert(offsets.end(), of_feature.begin(), of_feature.end());
  }
  offsets.resize(numbers);
  return offsets;
}

void set_offsets(std::vector<Feature>& features, const std::vector<double>& offsets) {
  auto next = offsets.begin();
  for (Feature& feature : features) {
    if (feature.kind != Feature::Kind::tensor || next == offsets.end()) continue;
    const auto end = next + std::min<std::ptrdiff_t>(feature.spec.elements(), offsets.end() - next);
    if (std::any_of(next, end, [](double offset) { return offset != 0; })) feature.offsets.assign(next, end);
    next = end;
  }
}

std::vector<std::string> constant_warnings(std::span<const double> values, const std::vector<std::string>& columns) {
  std::vector<std::string> warnings;
  for (std::size_t column = 0; column < columns.size() && values.size() > columns.size(); ++column) {
    if (extremes_of(values, columns.size(), column).spread() > 0) continue;
    warnings.push_back(fmt::format("column '{}': the target is {} in all rows, so nothing is to be learnt",
                                   columns[column], values[column]));
  }
  return warnings;
}

std::vector<std::string> precision_warnings(std::span<const double> values, const std::vector<std::string>& columns,
                                            const std::vector<double>& offsets) {
  constexpr double kRounding = 0x1p-24, kMatters = 0.001;
  std::vector<std::string> warnings;
  for (std::size_t column = 0; column < columns.size() && !values.empty(); ++column) {
    const Extremes of = extremes_of(values, columns.size(), column);
    if (offsets[column] != 0 || of.spread() == 0 || of.size() * kRounding < kMatters * of.spread()) continue;
    warnings.push_back(
        fmt::format("column '{}': targets from {:.15g} to {:.15g}, whose differences fp32 hardly holds; "
                    "add `normalize_target: true` beside `normalize`",
                    columns[column], of.lowest, of.highest));
  }
  return warnings;
}

}  // namespace lockstep::data
