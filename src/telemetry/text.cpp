#include "telemetry/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep::telemetry {
namespace {

struct FieldText {
  std::string operator()(bool value) const { return value ? "yes" : "no"; }
  std::string operator()(std::int64_t value) const { return grouped(value); }
  std::string operator()(double value) const { return short_number(value); }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(const std::map<std::string, double>& values) const {
    std::string text;
    for (const auto& [name, value] : values) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", spaced(name), short_number(value));
    }
    return text.empty() ? "none" : text;
  }
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

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 59.95) return fmt::format("{:.3g} s", std::max(seconds, 0.0));
  const auto whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string to_text(const Field& field) {
  return std::visit(FieldText{}, field);
}

std::string spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

}  // namespace lockstep::telemetry
