#include "cli/lineage_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cli/svg_chart.hpp"
#include "observe/telemetry/text.hpp"

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
  double at(double value) const { return high == low ? 0.5 : (value - low) / (high - low); }

 private:
  bool any_ = false;
};

constexpr double kLineageWidth = 1120, kLineageHeight = 340, kLineageLeft = 84, kLineageRight = 40, kLineageTop = 16,
                 kLineageBottom = 34;

/// Where steps and values lie in the picture.
class LineagePicture {
 public:
  explicit LineagePicture(const std::vector<LineageTrial>& trials) {
    for (const auto& trial : trials) {
      for (const auto& [step, value] : trial.reports) {
        steps_.take(step);
        values_.take(value);
        generations_.insert(step);
        known_[{trial.number, step}] = value;
      }
    }
  }
  bool empty() const { return generations_.empty(); }
  std::string frame() const;
  std::string line_of(const LineageTrial& trial) const;

 private:
  double x(std::int64_t step) const {
    return kLineageLeft + steps_.at(step) * (kLineageWidth - kLineageLeft - kLineageRight);
  }
  double y(double value) const {
    return kLineageHeight - kLineageBottom - values_.at(value) * (kLineageHeight - kLineageTop - kLineageBottom);
  }

  Extremes steps_, values_;
  std::set<std::int64_t> generations_;
  std::map<std::pair<std::int64_t, std::int64_t>, double> known_;  ///< by trial and step
};

std::string LineagePicture::frame() const {
  std::string frame;
  for (const std::int64_t step : generations_) {
    frame += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)", x(step), kLineageTop,
                         kLineageHeight - kLineageBottom);
    frame += fmt::format(R"(<text class="tick middle" x="{:.1f}" y="{}">{}</text>)", x(step),
                         kLineageHeight - kLineageBottom + 18, telemetry::grouped(step));
  }
  for (const double value : {values_.low, values_.high}) {
    frame += fmt::format(R"(<text class="tick end" x="{}" y="{:.1f}">{}</text>)", kLineageLeft - 8, y(value) + 4,
                         telemetry::short_number(value));
  }
  return frame;
}

std::string LineagePicture::line_of(const LineageTrial& trial) const {
  std::string path, dots, from;
  if (trial.from) {
    from = fmt::format(", from trial {} at step {}", trial.from->first, trial.from->second);
    if (const auto origin = known_.find(*trial.from); origin != known_.end()) {
      path = fmt::format("M{:.1f},{:.1f}", x(trial.from->second), y(origin->second));
    }
  }
  for (const auto& [step, value] : trial.reports) {
    if (!std::isfinite(value)) continue;
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : "L", x(step), y(value));
    dots += fmt::format(R"(<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="3"/>)", x(step), y(value));
  }
  return fmt::format(
      R"(<g class="{}"><title>trial {}{}</title><path class="line" d="{}" style="stroke-width:{}"/>{}</g>)",
      trial.of_best ? "s0" : "s7", trial.number, from, path, trial.of_best ? 2.6 : 1.0, dots);
}

}  // namespace

std::string lineage_chart(const std::string& metric, const std::vector<LineageTrial>& trials) {
  const LineagePicture picture(trials);
  if (picture.empty()) return "";
  std::string lines;
  for (const bool of_best : {false, true}) {  // the best on top
    for (const auto& trial : trials) {
      if (trial.of_best == of_best) lines += picture.line_of(trial);
    }
  }
  return fmt::format(
      "<h2>Lineage</h2>\n<figure><figcaption>{} after each generation: a line begins where a trial was copied; the "
      "best trial and those that it comes from in colour</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"Lineage\">{}{}"
      "</svg></figure>\n",
      escaped(metric), kLineageWidth, kLineageHeight, picture.frame(), lines);
}

}  // namespace lockstep::cli
