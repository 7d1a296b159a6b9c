#include "telemetry/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace lockstep::telemetry {
namespace {

constexpr std::size_t kManyRanks = 16;

bool has_word(const std::string& name, const std::string& word) {
  return ("_" + name + "_").find("_" + word + "_") != std::string::npos;
}

std::string measured(const std::string& name, double value) {
  if (has_word(name, "seconds")) return duration(value);
  if (has_word(name, "bytes")) return byte_count(value);
  return short_number(value);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text.empty() ? "none" : text;
}

std::string by_rank(const std::string& name, const std::map<std::string, double>& values) {
  if (values.size() > kManyRanks) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end(),
                                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    return fmt::format("{} to {}", measured(name, low->second), measured(name, high->second));
  }
  std::vector<std::pair<std::string, double>> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {  // "9" before "10"
    return std::pair(a.first.size(), a.first) < std::pair(b.first.size(), b.first);
  });
  std::vector<std::string> parts;
  for (const auto& [rank, value] : sorted) parts.push_back(measured(name, value));
  return joined(parts);
}

struct FieldText {
  explicit FieldText(const std::string& field) : name(field) {}
  std::string operator()(bool value) const { return value ? "yes" : "no"; }
  std::string operator()(std::int64_t value) const {
    return has_word(name, "bytes") ? byte_count(static_cast<double>(value)) : grouped(value);
  }
  std::string operator()(double value) const { return measured(name, value); }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(const std::map<std::string, double>& values) const {
    if (name.ends_with("by_rank")) return by_rank(name, values);
    std::vector<std::string> parts;
    for (const auto& [key, value] : values) parts.push_back(spaced(key) + " " + measured(name, value));
    return joined(parts);
  }
  const std::string& name;
};

}  // namespace

std::string grouped(std::int64_t value) {
  std::string text = fmt::format("{}", value);
  const std::size_t first_digit = value < 0 ? 1 : 0;
  for (std::size_t i = text.size(); i > first_digit + 3;) text.insert(i -= 3, ",");
  return text;
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size >= 1000 && size < 1e15) return grouped(std::llround(value));
  return fmt::format("{:.4g}", value);
}

std::string fixed_number(double value) {
  const double size = std::abs(value);
  if (size >= 1000 && size < 1e15) return grouped(std::llround(value));
  return size == 0 || (size >= 0.001 && size < 1000) ? fmt::format("{:.4f}", value) : fmt::format("{:.2e}", value);
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  return seconds < 59.95 ? fmt::format("{:.3g} s", std::max(seconds, 0.0)) : clock_time(seconds);
}

std::string clock_time(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  const auto whole = std::llround(std::max(seconds, 0.0));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string byte_count(double bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  return fmt::format("{:.3g} {}", bytes, kUnits.at(unit));
}

std::string to_text(const std::string& name, const Field& field) {
  return std::visit(FieldText(name), field);
}

std::string driver_text(const std::string& version, const std::string& cuda) {
  return fmt::format("{}{}for CUDA {}", version, version.empty() ? "" : ", ", cuda);
}

std::string spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

}  // namespace lockstep::telemetry
