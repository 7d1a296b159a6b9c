#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "backend/device.hpp"
#include "cli/commands.hpp"
#include "lockstep/version.hpp"

namespace lockstep::cli {

void add_version(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("version", "Print the version and the libraries that bits depend on.");
  command->footer("Example:\n  lockstep version");
  command->callback([&run] {
    run = [] {
      fmt::print("lockstep {}\n{}\n", version(), backend::cpu_info().libraries);
      return 0;
    };
  });
}

}  // namespace lockstep::cli
