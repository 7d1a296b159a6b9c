// The subcommands. Each function adds one subcommand to the program and stores the action to run if it is chosen.
#pragma once

#include <functional>

namespace CLI {  // NOLINT(readability-identifier-naming): another library's
class App;
}

namespace lockstep::cli {

/// Runs a parsed subcommand and returns the exit code.
using Action = std::function<int()>;

/// `run` is set if the subcommand was named on the command line.
void add_train(CLI::App& program, Action& run);
void add_launch(CLI::App& program, Action& run);
void add_sweep(CLI::App& program, Action& run);
void add_replay(CLI::App& program, Action& run);
void add_ensemble(CLI::App& program, Action& run);
void add_tune(CLI::App& program, Action& run);
void add_pod(CLI::App& program, Action& run);
void add_eval(CLI::App& program, Action& run);
void add_predict(CLI::App& program, Action& run);
void add_check(CLI::App& program, Action& run);
void add_show(CLI::App& program, Action& run);
void add_plan(CLI::App& program, Action& run);
void add_data(CLI::App& program, Action& run);
void add_checkpoint(CLI::App& program, Action& run);
void add_balance(CLI::App& program, Action& run);
void add_report(CLI::App& program, Action& run);
void add_trace(CLI::App& program, Action& run);
void add_schema(CLI::App& program, Action& run);
void add_metrics(CLI::App& program, Action& run);
void add_events(CLI::App& program, Action& run);
void add_bench(CLI::App& program, Action& run);
void add_doctor(CLI::App& program, Action& run);
void add_completion(CLI::App& program, Action& run);
void add_version(CLI::App& program, Action& run);

}  // namespace lockstep::cli
