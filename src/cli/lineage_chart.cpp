#include "cli/lineage_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cli/svg_chart.hpp"
#include "telemetry/text.hpp"

namespace lockstep::cli {

namespace {

struct Extremes {
  double low = 0, high = 0;
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = any_ ? std::min(low, value) : value;
    high = any_ ? std::max(high, value) : value;
    any_ = true;
  }
  [[nodiscard]] double at(double value) const { return high == low ? 0.5 : (value - low) / (high - low); }

 private:
  bool any_ = false;
};

}  // namespace

std::string lineage_chart(const std::string& metric, const std::vector<LineageTrial>& trials) {
  constexpr double width = 1120, height = 340, left = 84, right = 40, top = 16, bottom = 34;
  Extremes steps, values;
  std::set<std::int64_t> generations;
  std::map<std::pair<std::int64_t, std::int64_t>, double> known;  // by trial and step
  for (const auto& trial : trials) {
    for (const auto& [step, value] : trial.reports) {
      steps.take(static_cast<double>(step));
      values.take(value);
      generations.insert(step);
      known[{trial.number, step}] = value;
    }
  }
  if (generations.empty()) return "";
  const auto x = [&](std::int64_t step) { return left + steps.at(static_cast<double>(step)) * (width - left - right); };
  const auto y = [&](double value) { return height - bottom - values.at(value) * (height - top - bottom); };
  std::string frame, lines;
  for (const std::int64_t step : generations) {
    frame += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)", x(step), top,
                         height - bottom);
    frame += fmt::format(R"(<text class="tick middle" x="{:.1f}" y="{}">{}</text>)", x(step), height - bottom + 18,
                         telemetry::grouped(step));
  }
  for (const double value : {values.low, values.high}) {
    frame += fmt::format(R"(<text class="tick end" x="{}" y="{:.1f}">{}</text>)", left - 8, y(value) + 4,
                         telemetry::short_number(value));
  }
  for (const bool of_best : {false, true}) {  // the best on top
    for (const auto& trial : trials) {
      if (trial.of_best != of_best) continue;
      std::string path, dots;
      if (trial.from && known.contains(*trial.from)) {
        path = fmt::format("M{:.1f},{:.1f}", x(trial.from->second), y(known[*trial.from]));
      }
      for (const auto& [step, value] : trial.reports) {
        if (!std::isfinite(value)) continue;
        path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : "L", x(step), y(value));
        dots += fmt::format(R"(<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="3"/>)", x(step), y(value));
      }
      const std::string from =
          trial.from ? fmt::format(", from trial {} at step {}", trial.from->first, trial.from->second) : "";
      lines += fmt::format(
          R"(<g class="{}"><title>trial {}{}</title><path class="line" d="{}" style="stroke-width:{}"/>{}</g>)",
          of_best ? "s0" : "s7", trial.number, from, path, of_best ? 2.6 : 1.0, dots);
    }
  }
  return fmt::format(
      "<h2>Lineage</h2>\n<figure><figcaption>{} after each generation: a line begins where a trial was copied; the "
      "best trial and those that it comes from in colour</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"Lineage\">{}{}"
      "</svg></figure>\n",
      escaped(metric), width, height, frame, lines);
}

}  // namespace lockstep::cli
