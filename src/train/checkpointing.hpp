// Checkpointing: where a run goes on from, and when and what it writes. Every rank has one; rank 0 touches files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/run_directory.hpp"
#include "checkpoint/writer.hpp"
#include "train/run_context.hpp"

namespace lockstep::train {

class Checkpointing {
 public:
  /// Locks the run directory, which all hosts must share (not with `checkpoint: never`: nothing is read or written
  /// then). Every rank makes one.
  explicit Checkpointing(const RunContext& run, checkpoint::FileSystem& files = checkpoint::real_files());

  /// Goes on from the checkpoint that `--resume` chooses: overwrites what this rank has of the model, and the progress,
  /// but for the fingerprint, and returns true. Every rank calls it. Throws when the checkpoint is of another job or
  /// data set, or, where the job requires exact bits, of another fingerprint.
  bool resume(const std::vector<std::string>& state_names, optim::Model& model, checkpoint::Progress& progress);

  /// From here on checkpoints of these tensors can be written, all of the model on every rank; what a rank has of them
  /// must not move. `keep_every`: steps, 0: none.
  void prepare(std::vector<checkpoint::TensorSource> tensors, std::int64_t keep_every,
               std::chrono::milliseconds deadline = checkpoint::WriterOptions().deadline);

  /// Begins the checkpoint of `progress.step`: a copy now, the rest in the background. Every rank calls it. What
  /// goes wrong with it is a warning; the next one is tried again.
  void write(const checkpoint::Progress& progress, bool best);
  /// Whether the checkpoint of this step is there or under way. finish() reports whether it could be written.
  [[nodiscard]] bool has_begun(std::int64_t step) const { return begun_step_ == step; }
  /// The path of the newest checkpoint if it is of this step, else "". On rank 0.
  [[nodiscard]] std::string path(std::int64_t step) const;

  /// What is written of checkpoints that begin from now on are spans of it; null: of none.
  void trace(std::shared_ptr<TraceRecorder> recorder) {
    if (writer_) writer_->trace(std::move(recorder));
  }

  /// Reports what has been written meanwhile; cheap.
  void report();
  /// Every rank calls it, at the end: waits for what is under way. Throws Error(infrastructure) on all ranks when the
  /// last checkpoint that was asked for could not be written, or not even begun.
  void finish();
  /// Checkpoints that could not be written; on rank 0.
  [[nodiscard]] std::int64_t failures() const { return failures_; }

 private:
  /// The saved progress, if this run may go on from it.
  [[nodiscard]] checkpoint::Progress going_on(checkpoint::Progress saved, const checkpoint::Progress& now,
                                              const std::string& path) const;
  /// The one to go on from, read by `reader`.
  [[nodiscard]] std::optional<checkpoint::Checkpoint> find(checkpoint::CheckpointReader& reader) const;
  void warn_of_damage(const std::string& notes) const;
  [[nodiscard]] static checkpoint::Targets targets_of(const std::vector<std::string>& state_names, optim::Model& model);

  RunContext run_;
  checkpoint::FileSystem& files_;                        // what checkpoints are written to
  std::unique_ptr<checkpoint::RunDirectory> directory_;  // rank 0
  std::unique_ptr<checkpoint::CheckpointWriter> writer_;
  std::int64_t begun_step_ = -1, resumed_at_ = -1, failures_ = 0;
  bool last_never_began_ = false;
  std::string newest_, best_;  // when the run began; the best one on rank 0
};

}  // namespace lockstep::train
