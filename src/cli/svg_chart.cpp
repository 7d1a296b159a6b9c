#include "cli/svg_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "core/round_up.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::cli {

namespace {

constexpr double kWidth = 560, kHeight = 240;  // size of the chart in SVG units
constexpr double kLeft = 58, kRight = 18, kTop = 12, kBottom = 34;
constexpr std::size_t kMaxPoints = 480;
constexpr int kTicks = 5, kColors = 8;

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

/// A constant is drawn halfway between zero and twice its value, so that the axis shows its size.
Range widened(const Range& range) {
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  if (range.high - range.low > 1e-9 * size) return range;
  if (size == 0) return {0, 1};
  return range.high > 0 ? Range{0, 2 * range.high} : Range{2 * range.low, 0};
}

/// The range that the axis shows: where nearly all values are, if a few are so far off that the rest would be a flat
/// line.
Range without_outliers(std::vector<double> values, const Range& all) {
  constexpr std::size_t kFewest = 20;
  constexpr double kFar = 4;  // times the spread of the others
  if (values.size() < kFewest) return all;
  std::sort(values.begin(), values.end());
  const std::size_t cut = std::max<std::size_t>(1, values.size() / 50);
  const double low = values[cut], high = values[values.size() - 1 - cut], spread = high - low;
  if (spread <= 0) return all;
  Range shown = all;
  if (all.high > high + kFar * spread) shown.high = high + spread / 10;
  if (all.low < low - kFar * spread) shown.low = low - spread / 10;
  return shown;
}

/// 1, 2 or 5 times a power of ten, such that about `count` steps fill the range.
double round_step(const Range& range, int count) {
  const double raw = (range.high - range.low) / count, power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points) {
  std::vector<std::pair<double, double>> kept;
  const std::size_t each = divide_up<std::size_t>(points.size(), kMaxPoints);
  for (std::size_t i = 0; i < points.size(); i += each) {
    const std::size_t end = std::min(points.size(), i + each);
    double x = 0, y = 0;
    for (std::size_t j = i; j < end; ++j) x += points[j].first, y += points[j].second;
    kept.emplace_back(x / (end - i), y / (end - i));
  }
  return kept;
}

/// Of each point and its neighbours, a fortieth of the series on each side, the mean of those that are numbers.
std::vector<std::pair<double, double>> smooth(const std::vector<std::pair<double, double>>& points) {
  std::vector<double> sums{0}, counts{0};
  for (const auto& point : points) {
    const bool is_number = std::isfinite(point.second);
    sums.push_back(sums.back() + (is_number ? point.second : 0));
    counts.push_back(counts.back() + (is_number ? 1 : 0));
  }
  std::vector<std::pair<double, double>> means = points;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(points[i].second)) continue;
    const std::size_t side = std::min({points.size() / 40, i, points.size() - 1 - i});
    means[i].second = (sums[i + side + 1] - sums[i - side]) / (counts[i + side + 1] - counts[i - side]);
  }
  return means;
}

class Chart {
 public:
  Chart(const std::vector<Series>& series, std::function<std::string(double)> x_text) : x_text_(std::move(x_text)) {
    std::vector<double> values;
    for (const Series& one : series) {
      for (const auto& [x, y] : one.points) {
        if (!std::isfinite(y)) continue;
        x_.add(x);
        all_.add(y);
        values.push_back(y);
      }
    }
    if (x_.low == x_.high) x_.high += 1;
    y_ = widened(without_outliers(std::move(values), all_));
    const double step = round_step(y_, kTicks);
    y_ = {std::floor(y_.low / step) * step, std::ceil(y_.high / step) * step};
  }

  double x(double value) const { return kLeft + (value - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight); }
  double y(double value) const {
    const double shown = std::clamp(value, y_.low, y_.high);
    return kHeight - kBottom - (shown - y_.low) / (y_.high - y_.low) * (kHeight - kTop - kBottom);
  }
  /// Which values are off the chart; empty: none.
  std::string beyond() const {
    std::string text;
    if (all_.low < y_.low) text += fmt::format(" from {}", telemetry::short_number(all_.low));
    if (all_.high > y_.high) text += fmt::format(" up to {}", telemetry::short_number(all_.high));
    return text.empty() ? "" : "<span class=\"key\">some are off the chart:" + text + "</span>";
  }

  std::string axes(const std::string& x_name) const {
    std::string text;
    const double y_step = round_step(y_, kTicks), x_step = round_step(x_, kTicks);
    for (double at = y_.low; at <= y_.high + y_step / 2; at += y_step) {
      const double shown = std::abs(at) < y_step / 1e6 ? 0 : at;
      text += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", kLeft, kWidth - kRight,
                          y(at), y(at));
      text += fmt::format(R"(<text class="tick end" x="{}" y="{:.1f}">{}</text>)", kLeft - 6, y(at) + 4,
                          telemetry::short_number(shown));
    }
    for (double at = std::ceil(x_.low / x_step) * x_step; at <= x_.high; at += x_step) {
      text += fmt::format(R"(<text class="tick middle" x="{:.1f}" y="{}">{}</text>)", x(at), kHeight - kBottom + 16,
                          x_text_(at));
    }
    return text +
           fmt::format(R"(<text class="tick end" x="{}" y="{}">{}</text>)", kWidth - kRight, kHeight - 3, x_name);
  }

  std::string ring(const Series& series, std::size_t index) const {
    if (!series.best) return "";
    return fmt::format(R"(<circle class="ring s{}" cx="{:.1f}" cy="{:.1f}" r="6"/>)", index % kColors,
                       x(series.best->first), y(series.best->second));
  }

  std::string line(const Series& series, std::size_t index) const {
    constexpr std::size_t kDotted = 30, kSmoothed = 80;
    if (series.smoothed && series.points.size() > kSmoothed) {
      return path(thinned(series.points), index, " faint") + path(thinned(smooth(series.points)), index, "");
    }
    const auto points = thinned(series.points);
    std::string text = path(points, index, "");
    if (points.size() > kDotted) return text;
    for (const auto& [at, value] : points) {
      if (!std::isfinite(value)) continue;
      text +=
          fmt::format(R"(<circle class="dot s{}" cx="{:.1f}" cy="{:.1f}" r="2.5"/>)", index % kColors, x(at), y(value));
    }
    return text;
  }

 private:
  std::string path(const std::vector<std::pair<double, double>>& points, std::size_t index,
                   const char* more_classes) const {
    std::string path;
    bool pen = false;
    for (const auto& [at, value] : points) {
      if (std::isfinite(value)) path += fmt::format("{}{:.1f},{:.1f}", pen ? "L" : "M", x(at), y(value));
      pen = std::isfinite(value);
    }
    return fmt::format(R"(<path class="line s{}{}" d="{}"/>)", index % kColors, more_classes, path);
  }

  Range x_, y_, all_;                          ///< as shown; all values
  std::function<std::string(double)> x_text_;  ///< the label of a tick on the x axis
};

// A drawing has no page around it: it brings its own colors, font and legend.
constexpr const char* kDrawingStyle =
    "svg{background:#fff;font-family:system-ui,\"DejaVu Sans\",sans-serif}.grid{stroke:#e6e3dd}"
    ".tick,.name{fill:#6d7280;font-size:11px}.title{fill:#22252b;font-size:13px;font-weight:600}"
    ".end{text-anchor:end}.middle{text-anchor:middle}.line{fill:none;stroke:var(--c);stroke-width:1.8}"
    ".dot,.swatch{fill:var(--c)}.s0{--c:#2f6fde}.s1{--c:#d9542b}.s2{--c:#2a9d6f}.s3{--c:#8a55c8}"
    ".s4{--c:#c99a13}.s5{--c:#1aa3b8}.s6{--c:#c8467f}.s7{--c:#7b7f8a}";
constexpr double kTitle = 44, kLegendLine = 15;  // height above the axes of the title with one line of legend; of each
                                                 // further legend line

struct DrawnLegend {
  std::string text;
  double more = 0;  ///< height of the legend lines after the first
};

DrawnLegend drawn_legend(const std::vector<Series>& series) {
  DrawnLegend legend;
  double at = kLeft;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const double width = 30 + 6.5 * series[i].name.size();
    if (i > 0 && at + width > kWidth) {
      at = kLeft;
      legend.more += kLegendLine;
    }
    legend.text += fmt::format(R"(<rect class="swatch s{}" x="{}" y="{}" width="9" height="9"/>)", i % kColors, at,
                               28 + legend.more);
    legend.text += fmt::format(R"(<text class="name" x="{}" y="{}">{}</text>)", at + 14, 37 + legend.more,
                               escaped(series[i].name));
    at += width;
  }
  return legend;
}

std::string legend(const std::vector<Series>& series) {
  std::string text;
  for (std::size_t i = 0; i < series.size() && series.size() > 1; ++i) {
    text += fmt::format(R"(<span class="key"><i class="s{}"></i>{}</span>)", i % kColors, escaped(series[i].name));
  }
  return text;
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string line_chart(const std::string& title, const std::string& x_name, std::vector<Series> series) {
  std::erase_if(series, [](const Series& one) {
    return std::none_of(one.points.begin(), one.points.end(), [](const auto& p) { return std::isfinite(p.second); });
  });
  if (series.empty()) return "";
  const Chart chart(series, telemetry::short_number);
  std::string lines;
  for (std::size_t i = 0; i < series.size(); ++i) lines += chart.line(series[i], i) + chart.ring(series[i], i);
  const bool ringed = std::any_of(series.begin(), series.end(), [](const Series& one) { return one.best.has_value(); });
  return fmt::format(
      "<figure><figcaption>{}{}{}{}</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}{}</svg>"
      "</figure>\n",
      escaped(title), legend(series), ringed ? "<span class=\"key\">ringed: the best</span>" : "", chart.beyond(),
      kWidth, kHeight, escaped(title), chart.axes(x_name), lines);
}

std::string drawing(const std::string& title, const std::function<std::string(double)>& x_text,
                    std::vector<Series> series) {
  for (Series& one : series) {
    for (auto& point : one.points) point.first = std::log2(point.first);
  }
  const Chart chart(series, [&](double power) { return x_text(std::exp2(power)); });
  std::string lines;
  for (std::size_t i = 0; i < series.size(); ++i) lines += chart.line(series[i], i);
  const DrawnLegend legend = drawn_legend(series);
  const double top = kTitle + legend.more;
  return fmt::format(
      R"svg(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img" aria-label="{}"><style>{}</style>)svg"
      R"svg(<text class="title" x="{}" y="18">{}</text>{}<g transform="translate(0 {})">{}{}</g></svg>)svg"
      "\n",
      kWidth, kHeight + top, escaped(title), kDrawingStyle, kLeft, escaped(title), legend.text, top, chart.axes(""),
      lines);
}

}  // namespace lockstep::cli
