#include "run/train/same_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/words.hpp"
#include "data/input/schema.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/run_directory.hpp"
#include "step/optim/learning_rate.hpp"

namespace lockstep::train {

std::int64_t total_steps(const config::RunLength& length, std::int64_t steps_per_epoch) {
  return length.steps > 0 ? length.steps : std::llround(length.epochs * steps_per_epoch);
}

void require_same_run(const RunContext& run, std::int64_t steps, std::int64_t steps_per_epoch,
                      const checkpoint::Checkpoint& checkpoint) {
  const checkpoint::Progress& progress = checkpoint.manifest.progress;
  if (progress.job_digest == run.canonical.digest) return;
  const auto saved = config::length_if_else_equal(progress.job, run.canonical.text);
  if (!saved) checkpoint::require_same_job(checkpoint, run.canonical, run.options.change_settings);
  if (progress.step > steps) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: the run has done {} steps, more than the {} that the job now has; restore its length, "
                            "or choose a new run_directory",
                            checkpoint.path, progress.step, steps));
  }
  if (run.options.change_settings) return;
  const auto rates_of = [&](std::int64_t of_steps) {
    return optim::LearningRate(run.job.learning_rate, run.registries.schedules, run.job.batch_size, of_steps,
                               steps_per_epoch);
  };
  const auto saved_steps = total_steps(*saved, steps_per_epoch);
  const auto then = rates_of(saved_steps), now = rates_of(steps);
  for (std::int64_t step = 0; step < progress.step; ++step) {
    if (then.at(step) == now.at(step)) continue;
    throw Error(
        ExitCode::configuration,
        fmt::format("{}: this run began with {} steps, and with {} the schedule '{}' has other learning rates for "
                    "what it has done (step {}: {:.6g}, now {:.6g}); restore its length, or name a schedule for "
                    "what is left and add --change-settings (learning_rate.schedule=constant)",
                    checkpoint.path, saved_steps, steps, run.job.learning_rate.schedule.kind, step + 1, then.at(step),
                    now.at(step)));
  }
}

namespace {

std::string other_names(const std::string& from, const std::vector<std::string>& outputs, const char* what,
                        const std::vector<std::string>& names) {
  return fmt::format(
      "job.initialize: the outputs of {} are called {}, and the {} of the data {}: they are taken in this order", from,
      few_of(outputs), what, few_of(names));
}

/// The columns of several numbers that are predicted together.
std::vector<std::string> targets_of(const DataSetInfo& info) {
  for (const Feature& feature : info.features) {
    if (feature.kind == Feature::Kind::tensor && !feature.classes.empty()) return feature.classes;
  }
  return {};
}

}  // namespace

std::string require_same_reading(const Job& job, const checkpoint::Initialized& initialized,
                                 const input::PreparedData& data) {
  const InitializeOptions& from = *job.initialize;
  if (!from.only.empty()) return "";
  if (!initialized.schema.empty()) {
    const auto theirs = input::Schema::parse(initialized.schema, from.from);
    if (const std::string other = input::other_reading(theirs.info, data.schema.info); !other.empty()) {
      throw Error(ExitCode::configuration,
                  fmt::format("job.initialize: expected data as {} was trained with: {}; its weights are of those: "
                              "restore them, or name the weights that are of neither in `only`",
                              from.from, other));
    }
    const auto &called = theirs.info.class_names, &own = data.schema.info.class_names;
    if (called.size() == own.size() && called != own) return other_names(from.from, called, "classes", own);
    const auto predicted = targets_of(theirs.info), wanted = targets_of(data.schema.info);
    const bool others = predicted.size() == wanted.size() && predicted != wanted;
    return others ? other_names(from.from, predicted, "targets", wanted) : "";
  }
  const auto &outputs = initialized.outputs, &classes = data.schema.info.class_names;
  if (outputs.empty() || classes.empty() || outputs == classes) return "";
  if (std::is_permutation(outputs.begin(), outputs.end(), classes.begin(), classes.end())) {
    const auto [theirs, ours] = std::mismatch(outputs.begin(), outputs.end(), classes.begin());
    throw Error(ExitCode::configuration,
                fmt::format("job.initialize: expected the classes in the order of {}'s outputs, of which number {} is "
                            "{}, found {}; set `classes` in data.train to the order of id2label in its config.json",
                            from.from, theirs - outputs.begin(), *theirs, *ours));
  }
  return other_names(from.from, outputs, "classes", classes);
}

}  // namespace lockstep::train
