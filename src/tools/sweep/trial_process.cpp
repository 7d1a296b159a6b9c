#include "tools/sweep/trial_process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <utility>

#include "launch/allocation.hpp"
#include "launch/mpirun.hpp"
#include "launch/processes.hpp"
#include "launch/restart_policy.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/chosen_checkpoint.hpp"

namespace lockstep::sweep {

namespace {

std::string log_of(const TrialPlace& place) {
  return place.directory + "/log.txt";
}

launch::Child start(const Trial& trial, const TrialPlace& place) {
  std::vector<std::string> command;
  launch::ChildOptions options{.output = log_of(place),
                               .environment = {{launch::kMarkVariable, place.mark}},
                               .trains = launch::Trains::in_process};
  if (!place.slice.empty()) options.environment["CUDA_VISIBLE_DEVICES"] = place.slice;
  const bool elsewhere = !place.host.empty() && !launch::is_local(place.host);
  if (place.ranks > 1 || elsewhere) {
    launch::MpirunOptions mpirun{.ranks = place.ranks,
                                 .hosts = {},
                                 .agent = "",
                                 .environment = {{launch::kMarkVariable, place.mark}},
                                 .mark = place.mark};
    if (elsewhere) {
      mpirun.hosts = {{place.host, place.ranks}};
      mpirun.by_slurm = place.agent == launch::kSrunAgent;
      if (place.agent != "ssh" && !mpirun.by_slurm) mpirun.agent = place.agent;
      mpirun.environment.merge(launch::passed_on_variables(environ));
    }
    command = launch::mpirun_command(mpirun);
    options.environment = launch::mpirun_environment(mpirun);
    options.trains = launch::Trains::on_ranks;
  }
  for (auto& word : elsewhere ? launch::own_program_on_hosts() : std::vector{launch::own_program()}) {
    command.push_back(std::move(word));
  }
  command.insert(command.end(), {"train", place.directory + "/job.yaml"});
  command.insert(command.end(), place.words.begin(), place.words.end());
  if (!place.resume.empty()) command.insert(command.end(), {"--resume", place.resume});
  if (trial.origin) command.emplace_back("--change-settings");
  if (trial.until > 0) command.insert(command.end(), {"--stop-at", fmt::format("{}", trial.until)});
  return {command, options};
}

}  // namespace

TrialProcess::TrialProcess(const Trial& trial, TrialPlace place, std::string metric)
    : trial_(trial.number),
      until_(trial.until),
      place_(std::move(place)),
      metric_(std::move(metric)),
      events_(place_.directory),
      start_(Clock::now()),
      child_(start(trial, place_)) {}

const TrialEvents& TrialProcess::events() {
  events_.read();
  return events_;
}

void TrialProcess::stop() {
  child_.signal(stops_++ == 0 ? SIGUSR1 : SIGINT);  // mpirun passes SIGUSR1 on, and ends its ranks at a SIGINT
}

std::optional<TrialProcess::Outcome> TrialProcess::poll() {
  const auto code = child_.poll();
  if (!code) return std::nullopt;
  events_.read();
  return outcome(*code);
}

TrialProcess::Outcome TrialProcess::outcome(int code) {
  const double device_seconds = seconds() * place_.ranks;
  const auto& evaluations = events_.evaluations();
  const bool paused = code == static_cast<int>(ExitCode::interrupted) && until_ > 0 && evaluations.contains(until_);
  if (code != 0 && !paused) {
    // Asked by its host, too, which is to be left: a checkpoint was written, and nothing has failed.
    if (is_stopping() || code == static_cast<int>(ExitCode::interrupted)) return Stopped{};
    return Failure{reason(code), device_seconds, launch::is_permanent(code), code};
  }
  if (evaluations.empty() || !events_.end()) {
    if (is_stopping()) return Stopped{};  // mpirun, signalled before it has ranks, ends with 0
    return Failure{
        fmt::format("it ended with code {}, but {}/events.jsonl has no evaluation or no end", code, place_.directory),
        device_seconds, true};
  }
  const events::Evaluation& last = paused ? evaluations.at(until_) : evaluations.rbegin()->second;
  // A trial is judged by the model that it is used by.
  const auto restored = paused ? std::nullopt : checkpoint::restored_step(place_.directory + "/checkpoints");
  const events::Evaluation& judged = restored && evaluations.contains(*restored) ? evaluations.at(*restored) : last;
  const auto value = value_in(judged, metric_);
  if (!value || !std::isfinite(*value)) {
    return Failure{fmt::format("its validation {} after step {} is not a finite number", metric_, judged.step),
                   device_seconds, true};
  }
  Result result{.steps = last.step,
                .value = *value,
                .metrics = judged.metrics,
                .outcome = events_.end()->outcome,
                .parameters_sha256 = events_.end()->steps == judged.step ? events_.end()->parameters_sha256 : "",
                .data = events_.data(),
                .device_seconds = device_seconds,
                .finished = !paused};
  if (result.outcome == "already finished") result.outcome = "done";  // the sweep was killed before it could note that
  result.metrics["loss"] = judged.loss;
  return result;
}

std::string TrialProcess::reason(int code) const {
  const std::string message = launch::message_in_log(log_of(place_));
  if (child_.killed()) return fmt::format("killed by signal {}", code - 128);
  return fmt::format("code {}: {}", code, message.empty() ? "no message" : message);
}

}  // namespace lockstep::sweep
