// The GPUs of a run as a table.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "observe/telemetry/event_text.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::telemetry {

namespace {

constexpr std::size_t kColumns = 10;
using Cells = std::array<std::string, kColumns>;

struct Heading {
  const char* text;
  bool numbers;  ///< right-aligned
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
                                                      {"driver", false}}};

std::string megahertz(std::int64_t value) {
  return value > 0 ? fmt::format("{} MHz", value) : "";
}

Cells cells_of(const events::Gpu& gpu) {
  return {grouped(gpu.rank),
          gpu.host,
          gpu.model,
          fmt::format("{:.1f} GiB", static_cast<double>(gpu.memory_bytes) / (1 << 30)),
          gpu.compute_capability,
          grouped(gpu.multiprocessors),
          megahertz(gpu.clock_mhz),
          megahertz(gpu.memory_clock_mhz),
          gpu.pci_bus,
          driver_text(gpu.driver_version.value_or(""), gpu.driver)};
}

}  // namespace

std::string gpu_table(const std::vector<events::Gpu>& gpus, const Palette& palette) {
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
