#include "tools/sweep/space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/numbers.hpp"
#include "lockstep/error.hpp"
#include "lockstep/random.hpp"

namespace lockstep::sweep {

namespace {

constexpr std::size_t kMaxGrid = 100'000;

std::int64_t count_of(const SweepParameter& p) {
  if (p.distribution == Distribution::choice) return p.choices.size();
  return static_cast<std::int64_t>(std::floor((p.high - p.low) / p.step)) + 1;
}

std::string integer_text(double value) {
  return fmt::format("{:.0f}", value);
}

/// A real number at a fraction of the way from low to high.
std::string real_text(const SweepParameter& p, double fraction) {
  const bool log = p.distribution == Distribution::log_uniform;
  const double value = log ? std::exp(std::log(p.low) + fraction * (std::log(p.high) - std::log(p.low)))
                           : p.low + fraction * (p.high - p.low);
  std::string text = fmt::format("{:.6g}", value);
  const double rounded = number_from<double>(text).value_or(0);
  return rounded < p.low || rounded > p.high ? fmt::format("{}", std::clamp(rounded, p.low, p.high)) : text;
}

std::string countable(const SweepParameter& p, std::int64_t index) {
  if (p.distribution == Distribution::choice) return p.choices.at(index);
  return integer_text(p.low + (index * p.step));
}

bool is_real(const SweepParameter& p) {
  return p.distribution == Distribution::uniform || p.distribution == Distribution::log_uniform;
}

void lay_out(const std::vector<SweepParameter>& parameters, std::size_t at, Settings& point,
             std::vector<Settings>& points) {
  if (at == parameters.size()) {
    if (points.size() == kMaxGrid) {
      throw Error(ExitCode::configuration,
                  fmt::format("sweep.parameters: expected a grid of at most {} points, found a larger one; take fewer "
                              "values, or method: random",
                              kMaxGrid));
    }
    return points.push_back(point);
  }
  if (!is_active(parameters[at], point)) return lay_out(parameters, at + 1, point, points);
  for (const auto& value : grid_values(parameters[at])) {
    point.push_back({parameters[at].path, value});
    lay_out(parameters, at + 1, point, points);
    point.pop_back();
  }
}

}  // namespace

const std::string* value_of(const Settings& settings, const std::string& path) {
  const auto found = std::find_if(settings.begin(), settings.end(), [&](const auto& s) { return s.path == path; });
  return found == settings.end() ? nullptr : &found->value;
}

bool is_active(const SweepParameter& parameter, const Settings& settings) {
  return std::all_of(parameter.when.begin(), parameter.when.end(), [&](const SweepCondition& condition) {
    const std::string* value = value_of(settings, condition.parameter);
    return value != nullptr &&
           std::find(condition.values.begin(), condition.values.end(), *value) != condition.values.end();
  });
}

std::string value_at(const SweepParameter& parameter, double quantile) {
  if (is_real(parameter)) return real_text(parameter, quantile);
  const std::int64_t count = count_of(parameter);
  return countable(parameter, std::min(static_cast<std::int64_t>(quantile * count), count - 1));
}

std::optional<double> quantile_of(const SweepParameter& parameter, const std::string& value) {
  if (is_real(parameter)) {
    const double x = number_from<double>(value).value_or(0);
    const bool log = parameter.distribution == Distribution::log_uniform;
    if (log && x <= 0) return std::nullopt;
    const auto scale = [log](double v) { return log ? std::log(v) : v; };
    const double quantile = (scale(x) - scale(parameter.low)) / (scale(parameter.high) - scale(parameter.low));
    if (quantile < -1e-6 || quantile > 1 + 1e-6) return std::nullopt;
    return std::clamp(quantile, 0.0, 1.0);
  }
  const std::int64_t count = count_of(parameter);
  for (std::int64_t i = 0; i < count; ++i) {
    if (countable(parameter, i) == value) return (i + 0.5) / count;
  }
  return std::nullopt;
}

std::string scaled(const SweepParameter& parameter, const std::string& value, double factor) {
  if (parameter.distribution == Distribution::choice) return value;
  const double number = number_from<double>(value).value_or(0);
  if (is_real(parameter)) {
    const double wanted = std::clamp(number * factor, parameter.low, parameter.high);
    const std::string text = fmt::format("{:.6g}", wanted);
    const double rounded = number_from<double>(text).value_or(0);
    return rounded < parameter.low || rounded > parameter.high ? fmt::format("{}", wanted) : text;
  }
  const auto index_of = [&](double x) { return std::llround((x - parameter.low) / parameter.step); };
  const std::int64_t index = index_of(number);
  std::int64_t wanted = index_of(number * factor);
  if (wanted == index && factor != 1) wanted += (factor > 1) == (number > 0) ? 1 : -1;
  return countable(parameter, std::clamp<std::int64_t>(wanted, 0, count_of(parameter) - 1));
}

Settings draw(const std::vector<SweepParameter>& parameters,
              const std::function<double(const SweepParameter&)>& quantile) {
  Settings settings;
  for (const auto& parameter : parameters) {
    if (is_active(parameter, settings)) settings.push_back({parameter.path, value_at(parameter, quantile(parameter))});
  }
  return settings;
}

double uniform(std::uint64_t seed, const std::string& path, std::uint64_t trial, std::uint32_t draw) {
  RandomStream stream(mix(seed, hash_name(path)), trial, draw);
  const std::uint64_t high = stream.word() >> 5, low = stream.word() >> 6;  // 27 + 26 bits
  return ((high << 26) | low) * 0x1p-53;
}

std::vector<std::string> grid_values(const SweepParameter& parameter) {
  std::vector<std::string> values;
  if (is_real(parameter)) {
    for (std::int64_t i = 0; i < parameter.points; ++i) {
      values.push_back(real_text(parameter, static_cast<double>(i) / (parameter.points - 1)));
    }
    return values;
  }
  const std::int64_t count = std::min<std::int64_t>(count_of(parameter), kMaxGrid + 1);
  for (std::int64_t i = 0; i < count; ++i) values.push_back(countable(parameter, i));
  return values;
}

std::vector<Settings> grid(const std::vector<SweepParameter>& parameters) {
  std::vector<Settings> points;
  Settings point;
  lay_out(parameters, 0, point, points);
  return points;
}

std::vector<std::string> overrides(const Settings& settings) {
  std::vector<std::string> words;
  for (const auto& [path, value] : settings) words.push_back(path + "=" + value);
  return words;
}

std::string text(const Settings& settings) {
  std::vector<std::string> words;
  for (const auto& [path, value] : settings) {
    const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
    words.push_back(path + " " + (quoted ? value.substr(1, value.size() - 2) : value));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace lockstep::sweep
