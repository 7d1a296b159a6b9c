#include "observe/telemetry/text.hpp"
#include "core/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace lockstep::telemetry {
namespace {

constexpr std::size_t kManyRanks = 16;

std::string joined(const std::vector<std::string>& parts) {
  Line line(", ");
  for (const std::string& part : parts) line.add(part);
  return line.empty() ? "none" : line.text();
}

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

std::string counted(std::int64_t count, const std::string& thing) {
  const char* const plural = thing.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", grouped(count), thing, count == 1 ? "" : plural);
}

std::string to_text(double value, events::Unit unit) {
  if (unit == events::Unit::seconds) return duration(value);
  return unit == events::Unit::bytes ? byte_count(value) : short_number(value);
}

std::string to_text(std::int64_t value, events::Unit unit) {
  return unit == events::Unit::bytes ? byte_count(value) : grouped(value);
}

std::string to_text(bool value, events::Unit /*unit*/) {
  return value ? "yes" : "no";
}

std::string to_text(const std::string& value, events::Unit /*unit*/) {
  return value;
}

std::string to_text(const events::ByName& values, events::Unit unit) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : values) parts.push_back(spaced(name) + " " + to_text(value, unit));
  return joined(parts);
}

std::string to_text(const events::ByRank& values, events::Unit unit) {
  if (values.size() > kManyRanks) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end(),
                                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    return fmt::format("{} to {}", to_text(low->second, unit), to_text(high->second, unit));
  }
  std::vector<std::string> parts;
  for (const auto& [rank, value] : values) parts.push_back(to_text(value, unit));
  return joined(parts);
}

std::string driver_text(const std::string& version, const std::string& cuda) {
  return fmt::format("{}{}for CUDA {}", version, version.empty() ? "" : ", ", cuda);
}

std::string spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

}  // namespace lockstep::telemetry
