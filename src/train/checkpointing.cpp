#include "train/checkpointing.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::train {

Checkpointing::Checkpointing(const RunContext& run) : run_(run) {
  if (!run_.leads() || run_.job.checkpoint.never) return;
  directory_ = std::make_unique<RunDirectory>(run_.job.run_directory);
  best_name_ = best_checkpoint(directory_->checkpoints());
}

bool Checkpointing::resume(const std::vector<std::string>& state_names, Model& model, Progress& progress) {
  std::optional<CheckpointFiles> files;
  if (directory_) {
    std::string notes;
    files = find_resume(run_.options.resume, *directory_, run_.job, notes);
    if (!notes.empty()) run_.emit("warning", {{"message", "passed over a damaged checkpoint: " + notes}});
  }
  files = broadcast_files(std::move(files), run_.communicator, run_.timeout());
  if (!files) return false;
  const Progress saved = parse_progress(*files);
  if (saved.data_digest != progress.data_digest) {
    throw Error(ExitCode::data,
                fmt::format("{}: the data set is not the one that this run began with; restore it, or choose "
                            "a new run_directory",
                            files->path));
  }
  if (saved.fingerprint != progress.fingerprint && run_.job.exact == "required") {
    throw Error(ExitCode::usage,
                fmt::format("{}: it was written with {}, but this is {}; the bits would differ: use the same, "
                            "or set exact: preferred",
                            files->path, saved.fingerprint, progress.fingerprint));
  }
  restore(*files, state_names, model);
  const std::string fingerprint = progress.fingerprint;
  progress = saved;
  progress.fingerprint = fingerprint;
  written_step_ = progress.step;
  run_.emit("restart", {{"step", progress.step}, {"path", files->path}});
  return true;
}

void Checkpointing::write(const Progress& progress, const Model& model, const std::vector<std::string>& state_names,
                          bool best, Phases& phases) {
  written_step_ = progress.step;
  if (!directory_) return;
  const PhaseTimer timer(phases, "checkpoint");
  const auto start = Clock::now();
  const std::string path = directory_->checkpoint(progress.step);
  write_checkpoint(path, progress, model, state_names);
  if (best) {
    best_name_ = fmt::format("step-{:08}", progress.step);
    write_file(directory_->checkpoints() + "/best", best_name_ + "\n");
  }
  prune_checkpoints(directory_->checkpoints(), run_.job.checkpoint.keep, best_name_);
  run_.emit("checkpoint", {{"step", progress.step}, {"path", path}, {"seconds", seconds_since(start)}});
}

}  // namespace lockstep::train
