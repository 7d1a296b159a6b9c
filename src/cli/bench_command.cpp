// lockstep bench exchange: how long these ranks take to add a gradient, beside the library's own all-reduce.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/exchange_bench.hpp"
#include "cli/ranks.hpp"
#include "cli/validators.hpp"

namespace lockstep::cli {

namespace {

struct BenchArguments : ExchangeBenchOptions {
  RankOptions ranks;
};

/// "64KiB" -> "65536"
CLI::Validator gradient_size() {
  return {[](std::string& found) {
            const std::string word = found;
            const std::string problem = CLI::AsSizeValue(false)(found);
            if (problem.empty() && std::stoull(found) >= sizeof(float)) return std::string();
            return fmt::format("expected bytes, at least {}, such as 65536 or 64KiB, found '{}'", sizeof(float), word);
          },
          "SIZE", "gradient size"};
}

}  // namespace

void add_bench(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("bench", "Measure what this machine or cluster gives to training.");
  command->require_subcommand(1);
  command->footer("Example:\n  lockstep bench exchange --ranks 2");
  CLI::App* exchange =
      command->add_subcommand("exchange", "Time the gradients' exchange, and the library's own all-reduce beside it.");
  exchange->footer(
      "Examples:\n  lockstep bench exchange --ranks 2\n"
      "  mpirun -n 8 --hostfile hosts lockstep bench exchange --sizes 1MiB,256MiB --picture exchange.svg");
  auto arguments = std::make_shared<BenchArguments>();
  arguments->ranks.add_to(*exchange);
  exchange->add_option("--sizes", arguments->sizes, "bytes of the gradient: 4KiB,1MiB")
      ->delimiter(',')
      ->transform(gradient_size())
      ->default_str("4KiB,64KiB,1MiB,16MiB,64MiB");
  exchange->add_option("--rounds", arguments->rounds, "how often each is timed")
      ->check(at_least(1))
      ->capture_default_str();
  exchange->add_option("--shards-a-rank", arguments->shards_a_rank, "1, 2, 4 ... send one sum a rank, others more")
      ->check(at_least(1))
      ->capture_default_str();
  exchange->add_option("--picture", arguments->picture, "write the bandwidths as an SVG drawing");
  exchange->add_option("--log", arguments->log, "people, or json: a line a size and way on stdout")
      ->check(one_of({"people", "json"}))
      ->capture_default_str();
  exchange->callback([&run, arguments] {
    run = [arguments] {
      return run_on_ranks(arguments->ranks,
                          [&](Communicator& communicator) { return bench_exchange(communicator, *arguments); });
    };
  });
}

}  // namespace lockstep::cli
