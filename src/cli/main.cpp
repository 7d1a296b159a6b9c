// lockstep: one program, one subcommand a file.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/commands.hpp"
#include "cli/report_error.hpp"
#include "lockstep/error.hpp"

namespace {

int run(int argc, char** argv) {
  CLI::App program("lockstep trains one neural network on many ranks, to the same bits on any number of them.", "lockstep");
  program.require_subcommand(1);
  lockstep::cli::Action action;
  lockstep::cli::add_train(program, action);
  lockstep::cli::add_check(program, action);
  lockstep::cli::add_schema(program, action);
  lockstep::cli::add_version(program, action);
  lockstep::cli::add_completion(program, action);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = program.exit(error);
    return code == 0 ? 0 : static_cast<int>(lockstep::ExitCode::usage);
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return lockstep::cli::report(error);
  }
}
