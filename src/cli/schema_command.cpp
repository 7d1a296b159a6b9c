#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/commands.hpp"
#include "cli/job_argument.hpp"

namespace lockstep::cli {

void add_schema(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("schema", "Print the JSON Schema (draft-07) of the job file.");
  command->footer("Example:\n  lockstep schema > job.schema.json");
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "print the reference page instead");
  command->callback([&run, markdown] {
    run = [markdown] {
      const auto catalogue = train::catalogue_of(Registries::built_in());
      fmt::print("{}\n", *markdown ? config::reference_markdown(catalogue) : config::schema(catalogue));
      return 0;
    };
  });
}

}  // namespace lockstep::cli
