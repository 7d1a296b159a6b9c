// Line charts as SVG text. Colours come from the page's CSS (classes s0 ... s7), so that they follow its light or dark.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;       ///< by x; NaN or infinite values interrupt the line
  bool smoothed = false;                               ///< many points are drawn faintly, with means over neighbours
  std::optional<std::pair<double, double>> best = {};  ///< this point gets a ring
};

/// `&`, `<`, `>` and quotes escaped for HTML.
[[nodiscard]] std::string escaped(const std::string& text);

/// One figure with a title, axes with round numbers and, if there are several series, a legend. Long series are drawn
/// as the mean of each pixel's points. A few values far off the others do not flatten the rest: they are drawn at the
/// edge, and the figure's title says how far they go. Empty if no series has a point.
[[nodiscard]] std::string line_chart(const std::string& title, const std::string& x_name, std::vector<Series> series);

/// The same as a file of its own, with a logarithmic x axis (powers of two); for x > 0. `x_text` labels the ticks.
[[nodiscard]] std::string drawing(const std::string& title, const std::function<std::string(double)>& x_text,
                                  std::vector<Series> series);

}  // namespace lockstep::cli
