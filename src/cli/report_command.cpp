// lockstep report: a run as one HTML page.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/report_page.hpp"
#include "cli/run_events.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

int report(const std::string& run_directory, const std::string& output) {
  const std::string path = output.empty() ? run_directory + "/report.html" : output;
  const std::string page = report_page(run_directory, read_run_events(run_directory));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!(file << page).flush()) {
    throw Error(ExitCode::cannot_create, fmt::format("{}: cannot write the report: {}", path, std::strerror(errno)));
  }
  fmt::print("{}\n", path);
  return 0;
}

}  // namespace

void add_report(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("report", "Write a report on a run as one self-contained HTML page.");
  command->footer("Example:\n  lockstep report runs/digits");
  auto directory = std::make_shared<std::string>(), output = std::make_shared<std::string>();
  command->add_option("RUN_DIRECTORY", *directory, "of a run that has started")->required();
  command->add_option("--output", *output, "the page; report.html in the run directory by default");
  command->callback([&run, directory, output] { run = [directory, output] { return report(*directory, *output); }; });
}

}  // namespace lockstep::cli
