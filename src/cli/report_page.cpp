#include "cli/report_page.hpp"

#include <fmt/format.h>

#include "cli/report_style.hpp"
#include "cli/svg_chart.hpp"

namespace lockstep::cli {

std::string tile(const std::string& value, const std::string& name) {
  if (value.empty()) return "";
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", escaped(value), escaped(name));
}

std::string page_of(const std::string& title, const std::string& about, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}: lockstep</title><style>{1}</style></head><body>\n<h1>{0}</h1>\n"
      "<p class=\"about\">{2}</p>\n{3}</body></html>\n",
      escaped(title), kReportStyle, escaped(about), body);
}

}  // namespace lockstep::cli
