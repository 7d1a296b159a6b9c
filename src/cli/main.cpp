// lockstep: one program; each subcommand is in its own file.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"
#include "cli/report_error.hpp"
#include "lockstep/version.hpp"

namespace {

/// `lockstep help COMMAND` is `lockstep COMMAND --help`, as people try it.
std::vector<const char*> words_of(int argc, char** argv) {
  std::vector<const char*> words(argv, argv + argc);
  if (argc < 2 || std::string_view(words[1]) != "help") return words;
  words.erase(words.begin() + 1);
  words.push_back("--help");
  return words;
}

int run(int argc, char** argv) {
  CLI::App program("lockstep trains one neural network on many ranks, to the same bits on any number of them.",
                   "lockstep");
  program.require_subcommand(1);
  program.set_version_flag(
      "--version", [] { return fmt::format("lockstep {}", lockstep::version()); },
      "Print the version and exit; `lockstep version` says more");
  program.footer("Examples:\n  lockstep train --ranks 2\n  lockstep COMMAND --help");
  lockstep::cli::Action action;
  lockstep::cli::add_train(program, action);
  lockstep::cli::add_launch(program, action);
  lockstep::cli::add_sweep(program, action);
  lockstep::cli::add_replay(program, action);
  lockstep::cli::add_ensemble(program, action);
  lockstep::cli::add_tune(program, action);
  lockstep::cli::add_pod(program, action);
  lockstep::cli::add_eval(program, action);
  lockstep::cli::add_predict(program, action);
  lockstep::cli::add_check(program, action);
  lockstep::cli::add_show(program, action);
  lockstep::cli::add_plan(program, action);
  lockstep::cli::add_data(program, action);
  lockstep::cli::add_checkpoint(program, action);
  lockstep::cli::add_balance(program, action);
  lockstep::cli::add_report(program, action);
  lockstep::cli::add_trace(program, action);
  lockstep::cli::add_schema(program, action);
  lockstep::cli::add_metrics(program, action);
  lockstep::cli::add_events(program, action);
  lockstep::cli::add_bench(program, action);
  lockstep::cli::add_doctor(program, action);
  lockstep::cli::add_completion(program, action);
  lockstep::cli::add_version(program, action);
  try {
    const auto words = words_of(argc, argv);
    program.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    return lockstep::cli::report_parse_error(program, error);
  }
  return action();
}

// The first files that are opened would else become the output of the program and of its libraries.
void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    while (fcntl(stream, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) >= 0) {
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  open_closed_streams();
  try {
    return lockstep::cli::close_output(run(argc, argv));
  } catch (const std::exception& error) {
    return lockstep::cli::close_output(0, &error);
  }
}
