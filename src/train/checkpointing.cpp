#include "train/checkpointing.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "train/start_facts.hpp"

namespace lockstep::train {

Checkpointing::Checkpointing(const RunContext& run, FileSystem& files) : run_(run), files_(files) {
  if (run_.job.checkpoint.never) return;
  if (run_.leads()) directory_ = std::make_unique<RunDirectory>(run_.job.run_directory);
  require_shared(run_.job.run_directory, run_.communicator, run_.timeout());
}

bool Checkpointing::resume(const std::vector<std::string>& state_names, Model& model, Progress& progress) {
  std::optional<Checkpoint> checkpoint;
  if (directory_) {
    std::string notes;
    checkpoint = find_resume(run_.options.resume, *directory_, run_.job, notes);
    if (!notes.empty()) run_.emit("warning", {{"message", "passed over a damaged checkpoint: " + notes}});
  }
  checkpoint = broadcast_checkpoint(std::move(checkpoint), run_.communicator, run_.timeout());
  if (!checkpoint) {
    if (directory_) set_aside(real_files(), directory_->checkpoints(), -1);
    return false;
  }
  progress = going_on(checkpoint->manifest.progress, progress, checkpoint->path);
  load_into(*checkpoint, state_names, model);
  begun_step_ = resumed_at_ = progress.step;
  newest_ = checkpoint->path;
  if (directory_) set_aside(real_files(), directory_->checkpoints(), progress.step);
  return true;
}

Progress Checkpointing::going_on(Progress saved, const Progress& now, const std::string& path) const {
  if (saved.data_digest != now.data_digest) {
    throw Error(ExitCode::data,
                fmt::format("{}: the data set is not the one that this run began with; restore it, or choose "
                            "a new run_directory",
                            path));
  }
  if (saved.fingerprint != now.fingerprint) {
    const std::string difference =
        fmt::format("{}: it was written with the fingerprint {} ({}), but here it is {} ({})", path, saved.fingerprint,
                    saved.instructions, now.fingerprint, now.instructions);
    if (run_.job.exact == "required") {
      throw Error(ExitCode::usage, difference +
                                       "; the bits would differ: use the same processor and libraries, or set "
                                       "exact: preferred");
    }
    run_.emit("warning", {{"message", difference}});
    if (saved.exactness == kBitwise) saved.exactness = kNotBitwise;
  }
  if (now.exactness != kBitwise) saved.exactness = now.exactness;
  if (saved.loss_scale.scale == 0) saved.loss_scale = now.loss_scale;
  saved.fingerprint = now.fingerprint;
  saved.instructions = now.instructions;
  return saved;
}

std::string Checkpointing::path(std::int64_t step) const {
  if (!directory_ || !has_begun(step)) return {};
  return resumed_at_ == step ? newest_ : directory_->checkpoints() + "/" + checkpoint_name(step);
}

void Checkpointing::load_into(const Checkpoint& checkpoint, const std::vector<std::string>& state_names,
                              Model& model) const {
  Targets targets;
  add_targets(model.parameters, "", targets);
  add_targets(model.states, "", targets);
  for (std::size_t s = 0; s < state_names.size(); ++s) add_targets(model.optimizer[s], ":" + state_names[s], targets);
  load(checkpoint, targets, run_.communicator, run_.timeout());
}

void Checkpointing::prepare(const Model& model, const std::vector<std::string>& state_names, std::int64_t keep_every,
                            std::chrono::milliseconds deadline) {
  if (run_.job.checkpoint.never) return;
  WriterOptions options;
  options.directory = run_.job.run_directory + "/checkpoints";
  options.retention = {run_.job.checkpoint.keep, keep_every};
  options.best = best_checkpoint(options.directory);
  options.newest = newest_;
  options.part_bytes = run_.job.checkpoint.part_bytes;
  options.timeout = run_.timeout();
  options.deadline = deadline;
  writer_ =
      std::make_unique<CheckpointWriter>(run_.communicator, sources_of(model, state_names), std::move(options), files_);
}

void Checkpointing::write(const Progress& progress, bool best, Phases& phases) {
  if (!writer_) {
    begun_step_ = progress.step;
    return;
  }
  const PhaseTimer timer(phases, "checkpoint");
  last_never_began_ = !writer_->begin(progress, best);
  if (last_never_began_) {
    ++failures_;
    run_.emit("warning",
              {{"message", fmt::format("step {}: no checkpoint: {}; training goes on", progress.step, kNoAnswer)}});
  } else {
    begun_step_ = progress.step;
  }
  report();
}

void Checkpointing::report() {
  if (!writer_ || !run_.leads()) return;
  for (const auto& outcome : writer_->finished()) {
    if (!outcome.failure.empty()) {
      ++failures_;
      run_.emit("warning",
                {{"message",
                  fmt::format("step {}: no checkpoint: {}; training goes on, the newest checkpoint is {}", outcome.step,
                              outcome.failure, outcome.newest.empty() ? std::string("none") : outcome.newest)}});
      continue;
    }
    telemetry::Record record = {{"step", outcome.step},
                                {"path", outcome.path},
                                {"seconds", outcome.seconds},
                                {"blocked_seconds", outcome.blocked_seconds},
                                {"bytes", outcome.bytes}};
    if (outcome.best) record.emplace_back("best", run_.job.checkpoint.best);
    run_.emit("checkpoint", record);
    if (!outcome.warning.empty()) {
      run_.emit("warning", {{"message", "old checkpoints are not removed: " + outcome.warning}});
    }
  }
}

void Checkpointing::finish(Phases& phases) {
  if (!writer_) return;
  const PhaseTimer timer(phases, "checkpoint");
  std::string failure = writer_->finish();
  if (failure.empty() && last_never_began_) failure = kNoAnswer;
  report();
  if (!failure.empty()) {
    throw Error(ExitCode::infrastructure, "the last checkpoint could not be written: " + failure);
  }
}

}  // namespace lockstep::train
