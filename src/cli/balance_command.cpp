// lockstep balance report: who computed, who waited, what the balancer did and why.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/balance_report.hpp"
#include "cli/commands.hpp"

namespace lockstep::cli {

void add_balance(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("balance", "Show how a run's work was divided among its ranks.");
  command->require_subcommand(1);
  command->footer("Example:\n  lockstep balance report runs/digits");
  CLI::App* report =
      command->add_subcommand("report", "Print what each rank computed and waited for, and every move of shards.");
  report->footer("Example:\n  lockstep balance report runs/digits");
  auto directory = std::make_shared<std::string>();
  report->add_option("RUN_DIRECTORY", *directory, "of a run on several ranks")->required();
  report->callback([&run, directory] {
    run = [directory] {
      fmt::print("{}", balance_report(*directory));
      return 0;
    };
  });
}

}  // namespace lockstep::cli
