// lockstep train: one rank alone, a rank under a launcher, or the launcher itself (--ranks).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <fstream>
#include <memory>
#include <optional>

#include "cli/commands.hpp"
#include "cli/job_argument.hpp"
#include "cli/ranks.hpp"
#include "cli/report_error.hpp"
#include "cli/validators.hpp"
#include "comm/transport/recorded.hpp"
#include "core/digest.hpp"
#include "core/stop_count.hpp"
#include "launch/child.hpp"
#include "launch/rank_agent.hpp"
#include "launch/secrets.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/event_log.hpp"
#include "observe/telemetry/progress.hpp"

namespace lockstep::cli {

namespace {

struct TrainArguments : RunArguments {
  std::string resume = "auto", profile;
  std::int64_t stop_at = 0;
  bool change_settings = false;
};

// Hashing a few megabytes takes some milliseconds. It lets an outdated binary on one host be reported instead of
// trained with.
std::string program_digest() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  Sha256 hash;
  std::vector<char> block(1 << 20);
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    hash.add(std::string_view(block.data(), file.gcount()));
  }
  return hash.hex();
}

// Options that need checkpoints cannot be used with a job that writes none.
void check_checkpoints(const TrainArguments& arguments, const Job& job) {
  if (!job.checkpoint.never) return;
  const bool from_path = arguments.resume != "auto" && arguments.resume != "never";
  if (!from_path && arguments.stop_at == 0) return;
  throw Error(ExitCode::usage,
              fmt::format("{}: expected a job that writes checkpoints, found checkpoint: never; omit one of the two",
                          from_path ? "--resume" : "--stop-at"));
}

// Reports progress, and writes the events to the run directory if there is one. Under a launcher, the supervisor does
// both.
class RunReport {
 public:
  RunReport(const std::string& log, launch::RankAgent* agent, const Job& job) : json_(log == "json") {
    if (agent != nullptr) {
      sink_ = agent->make_sink();
      return;
    }
    std::vector<std::unique_ptr<events::Sink>> sinks;
    if (!job.checkpoint.never)
      sinks.push_back(telemetry::make_event_file(job.run_directory + "/events.jsonl", job.telemetry.every));
    console_ = json_ ? telemetry::make_json_console() : telemetry::make_progress_console();
    sinks.push_back(
        json_ ? telemetry::make_json_log(console_->printer())
              : telemetry::make_progress(console_->printer(), telemetry::progress_options_for(STDERR_FILENO)));
    sink_ = telemetry::make_tee(std::move(sinks));
  }
  [[nodiscard]] events::Sink* sink() { return sink_.get(); }
  /// The training is done; a log that is not complete is an error.
  void finish() {
    if (console_ && json_) telemetry::require_written(*console_);
  }

 private:
  bool json_;
  std::unique_ptr<telemetry::Console> console_;
  std::unique_ptr<events::Sink> sink_;
};

int train_rank(const TrainArguments& arguments, launch::RankAgent* agent, Communicator& communicator,
               const JobFile& job, const Registries& registries) {
  check_checkpoints(arguments, job);
  TrainerOptions options;
  options.resume = arguments.resume;
  options.handle_signals = true;
  options.signals_passed_on = launch::signals_are_passed_on();
  options.stop_at = arguments.stop_at;
  options.change_settings = arguments.change_settings;
  options.profile = profile_steps(arguments.profile);
  options.program_digest = program_digest();
  std::optional<RunReport> reported;
  if (communicator.rank() == 0) options.sink = reported.emplace(arguments.log, agent, job).sink();
  options.watcher = agent;
  options.restarts = launch::restarts_of_launch();
  if (agent != nullptr) agent->watch(comm::recorder_of(communicator));
  const TrainResult result = train_job(job, communicator, registries, options);
  // 75 promises a checkpoint. A job that never writes one would start from the beginning.
  const ExitCode stopped = job.checkpoint.never ? ExitCode::infrastructure : ExitCode::interrupted;
  const auto code = static_cast<int>(result.interrupted ? stopped : ExitCode::done);
  try {
    if (reported && code == 0) reported->finish();
  } catch (const Error& error) {
    return report(error);
  }
  if (agent == nullptr) return code;
  agent->leave(code);
  return static_cast<int>(ExitCode::done);  // the supervisor has the code; given an error code, mpirun would take
                                            // seconds to end
}

int train(TrainArguments& arguments) {
  ignore_broken_pipes();
  arguments.ranks.limited_by_micro_batches = arguments.ranks.is_training = true;
  (void)profile_steps(arguments.profile);  // a mistake is reported before any rank starts
  launch::take_secrets();
  const auto agent = launch::RankAgent::from_environment();
  if (agent) arguments.ranks.on_error = [&](const std::exception& error) { agent->fail(error); };
  return run_on_ranks(arguments.ranks, arguments.job,
                      [&](Communicator& communicator, const JobFile& job, const Registries& registries) {
                        return train_rank(arguments, agent.get(), communicator, job, registries);
                      });
}

}  // namespace

void add_train(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("train", "Train a job; without a file, the embedded digits.");
  command->footer(
      "Examples:\n  lockstep train examples/cifar10-resnet20.yaml batch_size=256\n  lockstep train --ranks 2\n"
      "  mpirun -n 4 lockstep train job.yaml");
  auto arguments = std::make_shared<TrainArguments>();
  arguments->add_to(*command, "one line per event");
  command->add_option("--resume", arguments->resume, "auto, never, or the path of a checkpoint")->capture_default_str();
  command
      ->add_option("--stop-at", arguments->stop_at,
                   "write a checkpoint after this step and exit with 75, as after a signal")
      ->check(at_least(1));
  command->add_flag("--change-settings", arguments->change_settings,
                    "go on with the job's length, learning rate, dropout and other settings that can change between "
                    "two steps, whatever those of the checkpoint are");
  command->add_option("--profile", arguments->profile, kProfileHelp);
  command->callback([&run, arguments] { run = [arguments] { return train(*arguments); }; });
}

}  // namespace lockstep::cli
