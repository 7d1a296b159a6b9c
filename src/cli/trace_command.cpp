// lockstep trace merge: the timelines of all ranks in one file, and what the steps waited for.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "core/files.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/diagnosis.hpp"
#include "observe/telemetry/trace_events.hpp"

namespace lockstep::cli {

namespace {

int merge(const std::string& run_directory) {
  const std::string folder = run_directory + "/trace", path = folder + "/merged.json";
  auto traces = telemetry::read_traces(folder);
  double error = 0;
  for (auto& trace : traces) {
    for (const auto& clock : trace.clocks) error = std::max(error, clock.error);
    telemetry::align(trace);
  }
  const auto critical = telemetry::critical_path(traces);
  if (critical.empty()) {
    throw Error(ExitCode::usage, fmt::format("{}: expected steps that every rank has traced completely, found none; "
                                             "trace again, with steps that the run reaches",
                                             folder));
  }
  const std::string verdict = telemetry::diagnose(critical, traces).sentence;
  telemetry::write_merged_trace(path, traces, critical, verdict);
  write_whole_file(telemetry::diagnosis_path(folder), verdict + "\n");
  fmt::print("{}: {} step{} of {} rank{}, clocks within {:.0f} us\n", path, critical.size(),
             critical.size() == 1 ? "" : "s", traces.size(), traces.size() == 1 ? "" : "s", error * 1e6);
  fmt::print("{}\n", verdict);
  return 0;
}

}  // namespace

void add_trace(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("trace", "Merge and diagnose the timelines of a run's ranks.");
  command->require_subcommand(1);
  const char* example = "Example:\n  lockstep train --ranks 2 --profile 101-150\n  lockstep trace merge runs/digits";
  command->footer(example);
  CLI::App* merged = command->add_subcommand(
      "merge", "Write trace/merged.json with all ranks on one clock, for Perfetto, and report what limits the steps.");
  merged->footer(example);
  auto directory = std::make_shared<std::string>();
  merged->add_option("RUN_DIRECTORY", *directory, "of a run with --profile")->required();
  merged->callback([&run, directory] { run = [directory] { return merge(*directory); }; });
}

}  // namespace lockstep::cli
