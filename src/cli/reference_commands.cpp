// lockstep schema, metrics, events and version: what the program can say about itself.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "device/device.hpp"
#include "lockstep/version.hpp"
#include "observe/telemetry/event_json.hpp"
#include "observe/telemetry/event_schema.hpp"
#include "observe/telemetry/metric_list.hpp"
#include "run/train/catalogue.hpp"
#include "run/train/fingerprint.hpp"
#include "run/train/plugins.hpp"
#include "step/exec/cpu_device.hpp"

namespace lockstep::cli {

namespace {

/// Adds a subcommand that calls `print`, with a flag --markdown.
void add_listing(CLI::App& program, Action& run, const char* name, const char* help, const char* example,
                 const char* markdown_help, void (*print)(bool markdown)) {
  CLI::App* command = program.add_subcommand(name, help);
  command->footer(fmt::format("Example:\n  {}", example));
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, markdown_help);
  command->callback([&run, markdown, print] {
    run = [markdown, print] {
      print(*markdown);
      return 0;
    };
  });
}

int print_schema(bool markdown, const std::vector<std::string>& plugins) {
  Registries registries = Registries::built_in();
  for (const auto& path : plugins) train::open_plugins({{path, {.file = "--plugin", .path = ""}}}, registries);
  const auto catalogue = train::catalogue_of(registries);
  fmt::print("{}\n",
             markdown ? config::reference_markdown(catalogue) : config::schema(catalogue, !registries.plugins.empty()));
  return 0;
}

void print_metrics(bool markdown) {
  if (markdown) return fmt::print("{}", telemetry::metrics_markdown());
  for (const auto& metric : telemetry::metric_list()) fmt::print("{:<50}  {}\n", metric.name, metric.help);
}

void print_events(bool markdown) {
  if (markdown) return fmt::print("{}", telemetry::events_markdown());
  telemetry::for_each_kind([](const auto& kind) {
    kind.describe([&](const char* name, auto /*member*/, const char* doc, events::Unit /*unit*/ = {}) {
      fmt::print("{:<36}  {}\n", fmt::format("{}.{}", kind.kName, name), doc);
    });
  });
}

}  // namespace

void add_schema(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("schema", "Print the JSON Schema (draft-07) of the job file.");
  command->footer(
      "Examples:\n  lockstep schema > job.schema.json\n  lockstep schema --plugin ./libmine.so > mine.schema.json");
  auto markdown = std::make_shared<bool>(false);
  auto plugins = std::make_shared<std::vector<std::string>>();
  command->add_flag("--markdown", *markdown, "print the reference page instead");
  command->add_option("--plugin", *plugins, "of jobs with this plugin: with what it adds; may be repeated")
      ->allow_extra_args(false);
  command->callback(
      [&run, markdown, plugins] { run = [markdown, plugins] { return print_schema(*markdown, *plugins); }; });
}

void add_metrics(CLI::App& program, Action& run) {
  add_listing(program, run, "metrics", "List the metrics that ranks export to Prometheus.",
              "lockstep metrics | grep checkpoint", "print a table with kinds and labels", print_metrics);
}

void add_events(CLI::App& program, Action& run) {
  add_listing(program, run, "events", "List the events of a run and their fields.", "lockstep events | grep '^step'",
              "print a table with types", print_events);
}

void add_version(CLI::App& program, Action& run) {
  CLI::App* command =
      program.add_subcommand("version", "Print the version, the libraries and the fingerprint: what bits depend on.");
  command->footer("Example:\n  lockstep version");
  command->callback([&run] {
    run = [] {
      fmt::print("lockstep {}\n{}\nfingerprint: {}\n", version(), device::cpu_info().libraries,
                 train::take_fingerprint(exec::CpuDevice()).text());
      return 0;
    };
  });
}

}  // namespace lockstep::cli
