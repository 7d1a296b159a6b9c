#include "train/checkpointing.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "train/start_facts.hpp"

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
  progress = going_on(parse_progress(*files), progress, files->path);
  restore(*files, state_names, model);
  written_step_ = resumed_at_ = progress.step;
  resumed_from_ = files->path;
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
  saved.fingerprint = now.fingerprint;
  saved.instructions = now.instructions;
  return saved;
}

std::string Checkpointing::path(std::int64_t step) const {
  if (!directory_ || !has_written(step)) return {};
  return resumed_at_ == step ? resumed_from_ : directory_->checkpoint(step);
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
  telemetry::Record record = {{"step", progress.step}, {"path", path}, {"seconds", seconds_since(start)}};
  if (best) record.emplace_back("best", run_.job.checkpoint.best);
  run_.emit("checkpoint", record);
}

}  // namespace lockstep::train
