// Checkpointing: where a run goes on from, and when and what it writes. Every rank has one; rank 0 touches files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/spans.hpp"
#include "train/checkpoint.hpp"
#include "train/run_context.hpp"
#include "train/run_directory.hpp"

namespace lockstep::train {

class Checkpointing {
 public:
  /// Locks the run directory (not with `checkpoint: never`: nothing is read or written then).
  explicit Checkpointing(const RunContext& run);

  /// Goes on from the checkpoint that `--resume` chooses: overwrites the model and the progress, but for the
  /// fingerprint, and returns true. Every rank calls it. Throws when the checkpoint is of another job or data set, or,
  /// where the job requires exact bits, of another fingerprint.
  bool resume(const std::vector<std::string>& state_names, Model& model, Progress& progress);

  /// Writes the checkpoint of `progress.step`, where there is none yet or this one is `best`, and removes old ones.
  void write(const Progress& progress, const Model& model, const std::vector<std::string>& state_names, bool best,
             Phases& phases);
  /// Whether the checkpoint of this step stands.
  [[nodiscard]] bool has_written(std::int64_t step) const { return written_step_ == step; }
  /// Where the newest checkpoint stands if it is of this step, else "". On rank 0.
  [[nodiscard]] std::string path(std::int64_t step) const;

 private:
  /// The saved progress, if this run may go on from it.
  [[nodiscard]] Progress going_on(Progress saved, const Progress& now, const std::string& path) const;

  RunContext run_;
  std::unique_ptr<RunDirectory> directory_;  // rank 0
  std::int64_t written_step_ = -1, resumed_at_ = -1;
  std::string resumed_from_;
  std::string best_name_;
};

}  // namespace lockstep::train
