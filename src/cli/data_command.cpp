// lockstep data: what a data set holds (info), one indexed file of it (pack), known ones from the network (fetch).
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/data_commands.hpp"

namespace lockstep::cli {

void add_data(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("data", "Inspect and pack data sets, and download well-known ones.");
  command->require_subcommand(1);
  command->footer("Example:\n  lockstep data info examples/cifar10-resnet20.yaml");
  add_data_info(*command, run);
  add_data_pack(*command, run);
  add_data_fetch(*command, run);
}

}  // namespace lockstep::cli
