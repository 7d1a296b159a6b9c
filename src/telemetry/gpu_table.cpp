#include "telemetry/gpu_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "telemetry/event_fields.hpp"
#include "telemetry/text.hpp"

namespace lockstep::telemetry {

namespace {

constexpr std::size_t kColumns = 11;
using Cells = std::array<std::string, kColumns>;

struct Heading {
  const char* text;
  bool numbers;  ///< aligned at their ends
};
constexpr std::array<Heading, kColumns> kHeadings = {{{"rank", true},
                                                      {"host", false},
                                                      {"model", false},
                                                      {"memory", true},
                                                      {"compute capability", true},
                                                      {"multiprocessors", true},
                                                      {"clock", true},
                                                      {"memory clock", true},
                                                      {"PCI address", false},
                                                      {"driver", false},
                                                      {"", false}}};

std::string megahertz(double value) {
  return value > 0 ? fmt::format("{:.0f} MHz", value) : "";
}

Cells cells_of(const Record& record) {
  Fields fields(record);
  const std::string rank = fields.take("rank"), host = fields.take("host"), model = fields.take("model");
  const double bytes = fields.take_number("memory_bytes");
  const std::string capability = fields.take("compute_capability"), processors = fields.take("multiprocessors");
  const double clock = fields.take_number("clock_mhz"), memory_clock = fields.take_number("memory_clock_mhz");
  const std::string place = fields.take("pci_bus");
  const std::string version = fields.take("driver_version"), cuda = fields.take("driver");
  Line rest;
  rest.add_rest(fields);
  return {rank,
          host,
          model,
          fmt::format("{:.1f} GiB", bytes / (1 << 30)),
          capability,
          processors,
          megahertz(clock),
          megahertz(memory_clock),
          place,
          driver_text(version, cuda),
          rest.text()};
}

}  // namespace

std::string gpu_table(const std::vector<Record>& gpus, const Palette& palette) {
  Cells headings;
  std::transform(kHeadings.begin(), kHeadings.end(), headings.begin(), [](const Heading& one) { return one.text; });
  std::vector<Cells> rows = {headings};
  std::transform(gpus.begin(), gpus.end(), std::back_inserter(rows), cells_of);
  std::vector<std::string> lines(rows.size());
  for (std::size_t c = 0; c < kColumns; ++c) {
    const auto longer = [c](const Cells& a, const Cells& b) { return a.at(c).size() < b.at(c).size(); };
    if (std::max_element(rows.begin() + 1, rows.end(), longer)->at(c).empty()) continue;
    const std::size_t width = std::max_element(rows.begin(), rows.end(), longer)->at(c).size();
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::string space = lines[r].empty() ? "" : "  ", &cell = rows[r].at(c);
      lines[r] +=
          space + (kHeadings.at(c).numbers ? fmt::format("{:>{}}", cell, width) : fmt::format("{:<{}}", cell, width));
    }
  }
  std::string text;
  for (std::size_t r = 0; r < lines.size(); ++r) {
    lines[r].erase(lines[r].find_last_not_of(' ') + 1);
    text +=
        fmt::format("{}  {}{:<7}{}{}", r == 0 ? "" : "\n", palette.quiet, r == 0 ? "gpu" : "", lines[r], palette.reset);
  }
  return text;
}

}  // namespace lockstep::telemetry
