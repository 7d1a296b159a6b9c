#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "device/device.hpp"
#include "lockstep/version.hpp"
#include "train/fingerprint.hpp"

namespace lockstep::cli {

void add_version(CLI::App& program, Action& run) {
  CLI::App* command =
      program.add_subcommand("version", "Print the version, the libraries and the fingerprint: what bits depend on.");
  command->footer("Example:\n  lockstep version");
  command->callback([&run] {
    run = [] {
      fmt::print("lockstep {}\n{}\nfingerprint: {}\n", version(), device::cpu_info().libraries,
                 train::take_fingerprint().text());
      return 0;
    };
  });
}

}  // namespace lockstep::cli
