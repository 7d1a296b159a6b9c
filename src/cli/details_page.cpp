#include "cli/details_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/svg_chart.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::cli {

namespace {

constexpr std::int64_t kMostCells = 100;     // classes on a side of the matrix
constexpr std::int64_t kMostNames = 40;      // on a side of the matrix; more cannot be read
constexpr std::int64_t kMostCounts = 20;     // classes with numbers in the cells
constexpr std::size_t kRowsShown = 20;       // of the table, without a click
constexpr double kPlot = 480;                // width and height of all cells
constexpr double kMargin = 14, kLetter = 6;  // of the names at the left, and of those above

std::string short_name(const std::string& name) {
  constexpr std::size_t kLetters = 14;
  return escaped(name.size() > kLetters ? name.substr(0, kLetters - 1) + "." : name);
}

/// Rows are classes, columns what they are taken for; right ones in one color, others in another, by share of the row.
std::string matrix(const EvaluationDetails& details) {
  const std::int64_t classes = std::ssize(details.rows);
  if (details.confusions.empty() || classes > kMostCells) return "";
  const double cell = kPlot / classes;
  std::size_t letters = 0;
  for (const DetailsRow& row : details.rows) letters = std::max(letters, short_name(row.name).size());
  const double before = classes > kMostNames ? kMargin : kMargin + kLetter * letters;
  const auto at = [&](std::int64_t k) { return before + k * cell; };
  std::string svg;
  for (std::int64_t k = 0; k < classes && classes <= kMostNames; ++k) {
    const std::string name = short_name(details.rows[k].name);
    const double middle = at(k) + cell / 2;
    svg += fmt::format(R"(<text class="tick end" x="{:.1f}" y="{:.1f}">{}</text>)", before - 5, middle + 4, name);
    svg += fmt::format(R"-(<text class="tick" transform="translate({:.1f},{:.1f}) rotate(-60)">{}</text>)-", middle + 3,
                       before - 5, name);
  }
  for (const Confusion& pair : details.confusions) {
    const auto& row = details.rows[pair.actual];
    const auto& column = details.rows[pair.predicted];
    const double share = static_cast<double>(pair.samples) / row.samples;
    svg +=
        fmt::format(R"(<rect class="cell s{}" x="{:.1f}" y="{:.1f}" width="{:.2f}" height="{:.2f}" opacity="{:.2f}">)"
                    R"(<title>{} as {}: {} of {}</title></rect>)",
                    pair.actual == pair.predicted ? 0 : 1, at(pair.predicted), at(pair.actual), cell - 1, cell - 1,
                    std::max(0.08, share), escaped(row.name), escaped(column.name), telemetry::grouped(pair.samples),
                    telemetry::grouped(row.samples));
    if (classes > kMostCounts) continue;
    svg += fmt::format(R"(<text class="count{}" x="{:.1f}" y="{:.1f}">{}</text>)", share > 0.5 ? " light" : "",
                       at(pair.predicted) + cell / 2, at(pair.actual) + cell / 2 + 4, pair.samples);
  }
  return fmt::format(
      "<figure class=\"matrix\"><figcaption>Which class (row) is taken for which (column)</figcaption>"
      "<svg viewBox=\"0 0 {0:.0f} {0:.0f}\">{1}</svg></figure>\n",
      before + kPlot, svg);
}

std::string rows_table(const EvaluationDetails& details) {
  if (details.rows.empty()) return "";
  const bool values = details.meaning == ensemble::Meaning::values;
  const std::string head = values ? "<tr><th>value</th><th class=\"n\">mae</th><th class=\"n\">rmse</th></tr>"
                                  : fmt::format(
                                        "<tr><th>{}</th><th class=\"n\">samples</th><th "
                                        "class=\"n\">precision</th><th class=\"n\">recall</th><th "
                                        "class=\"n\">f1</th><th class=\"n\">auc</th></tr>",
                                        details.meaning == ensemble::Meaning::classes ? "class" : "label");
  std::string body;
  for (const DetailsRow& row : details.rows) {
    const auto cell = [](const std::string& text) { return fmt::format("<td class=\"n\">{}</td>", text); };
    const auto fraction = [&](double value) { return cell(fmt::format("{:.4f}", value)); };
    body += fmt::format("<tr><td>{}</td>", escaped(row.name));
    body += values ? cell(telemetry::short_number(row.absolute_error)) +
                         cell(telemetry::short_number(row.root_squared_error))
                   : cell(telemetry::grouped(row.samples)) + fraction(row.precision) + fraction(row.recall) +
                         fraction(f1_of(row)) + (row.auc ? fraction(*row.auc) : cell(""));
    body += "</tr>";
  }
  std::string table = fmt::format("<table>{}{}</table>", head, body);
  if (details.rows.size() > kRowsShown) {
    table = fmt::format("<details><summary>all {}</summary>{}</details>", details.rows.size(), table);
  }
  return fmt::format("<div class=\"card\">{}</div>\n", table);
}

std::string worst(const EvaluationDetails& details) {
  std::string all;
  for (const WorstSample& sample : details.worst) {
    std::string text;
    if (!sample.png.empty()) text += fmt::format(R"(<img alt="" src="data:image/png;base64,{}">)", sample.png);
    if (!sample.actual.empty()) {
      text += fmt::format("<b>{}</b><span>predicted {}</span>", escaped(sample.actual), escaped(sample.predicted));
    }
    all += fmt::format("<div class=\"tile\">{}<span>{}, loss {}</span></div>\n", text, escaped(sample.name),
                       telemetry::short_number(sample.loss));
  }
  return all.empty() ? "" : "<h3>The worst samples</h3>\n<div class=\"tiles\">" + all + "</div>\n";
}

}  // namespace

std::string details_section(const EvaluationDetails& details) {
  const std::string charts = matrix(details) + rows_table(details);
  return fmt::format("<h2>Predictions of {} {} samples, after step {}</h2>\n{}{}", telemetry::grouped(details.samples),
                     details.set, telemetry::grouped(details.step),
                     charts.empty() ? "" : "<div class=\"charts\">" + charts + "</div>\n", worst(details));
}

}  // namespace lockstep::cli
