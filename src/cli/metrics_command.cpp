// lockstep metrics: what ranks export to Prometheus.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/commands.hpp"
#include "telemetry/metric_list.hpp"

namespace lockstep::cli {

namespace {

int print_metrics(bool markdown) {
  if (markdown) {
    fmt::print("{}", telemetry::metrics_markdown());
    return 0;
  }
  for (const auto& metric : telemetry::metric_list()) fmt::print("{:<50}  {}\n", metric.name, metric.help);
  return 0;
}

}  // namespace

void add_metrics(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("metrics", "List the metrics that ranks export to Prometheus.");
  command->footer("Example:\n  lockstep metrics | grep checkpoint");
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "print a table with kinds and labels");
  command->callback([&run, markdown] { run = [markdown] { return print_metrics(*markdown); }; });
}

}  // namespace lockstep::cli
