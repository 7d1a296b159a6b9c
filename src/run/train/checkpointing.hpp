// Checkpointing: which checkpoint a run resumes from, and when it writes which ones. Every rank has one; only rank 0
// manages the directory.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/transport/work_together.hpp"
#include "core/ran_time.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/copies.hpp"
#include "run/checkpoint/reader.hpp"
#include "run/checkpoint/run_directory.hpp"
#include "run/checkpoint/writer.hpp"
#include "run/train/run_context.hpp"

namespace lockstep::train {

/// How long a run that is done waits for a disk that does not take its last checkpoint. Training it again would cost
/// more, and the disk may be full then, too.
struct LastCheckpointWait {
  std::chrono::milliseconds limit = std::chrono::hours(1);
  std::chrono::milliseconds first{1'000},
      longest{60'000};  ///< pauses double, and each is cut by up to a half at random
};

class Checkpointing {
 public:
  /// Locks the run directory, which all hosts must share (except with `checkpoint: never`: nothing is read or written
  /// then). Every rank makes one.
  /// If `stop` asks for it while a checkpoint is looked for, fetched or read, all ranks throw Error(interrupted).
  explicit Checkpointing(const RunContext& run, checkpoint::FileSystem& files = checkpoint::real_files(),
                         comm::StopPoll stop = {});

  /// Throws if a checkpoint is of another run.
  using RequireSameRun = std::function<void(const checkpoint::Checkpoint&)>;
  /// Resumes from the checkpoint that `--resume` selects: overwrites this rank's part of the model, and the progress
  /// except for the job and the fingerprint, and returns true; false if there is none. Collective. Throws if the
  /// checkpoint belongs to another run or data set, or, if the job requires exact bits, to another fingerprint or to
  /// other plugins.
  bool resume(const std::vector<optim::OptimizerState>& states, optim::Model& model, checkpoint::Progress& progress,
              const RequireSameRun& require_same_run);

  /// From here on, checkpoints of these tensors can be written; together, the ranks have all of the model. The tensors
  /// must not move. `keep_every`: steps; 0: none.
  void prepare(std::vector<checkpoint::TensorSource> tensors, std::int64_t keep_every,
               std::chrono::milliseconds deadline = checkpoint::WriterOptions().deadline);

  /// Begins the checkpoint of `progress.step`: copies now, writes in the background. Collective. A failure is only a
  /// warning; the next checkpoint is tried as usual.
  void write(const checkpoint::Progress& progress, bool best);
  /// Whether the checkpoint of this step has been begun or written. finish() reports whether writing succeeded.
  bool has_begun(std::int64_t step) const { return begun_step_ == step; }
  /// The path of the newest checkpoint if it is of this step, else "". On rank 0 only.
  std::string path(std::int64_t step) const;

  /// The writing of checkpoints that begin from now on is recorded as spans; null: not recorded.
  void trace(std::shared_ptr<TraceRecorder> recorder) {
    if (writer_) writer_->trace(std::move(recorder));
  }

  /// Reports what has been written since the last call; cheap.
  void report();
  /// Collective, at the end: waits for checkpoints under way. If the last requested one could not be begun or written,
  /// it is tried again, with the tensors as they are: they must not have changed. Throws Error(infrastructure) on all
  /// ranks when the limit is over, a stop is requested meanwhile, or another launch has taken the directory.
  void finish(const LastCheckpointWait& wait = {});
  /// Number of checkpoints that could not be written; on rank 0 only.
  std::int64_t failures() const { return failures_; }

 private:
  /// Returns the saved progress if this run may resume from it; else throws.
  checkpoint::Progress going_on(checkpoint::Progress saved, const checkpoint::Progress& now,
                                const std::string& path) const;
  /// The checkpoint to resume from, read by `reader`.
  [[nodiscard]] std::optional<checkpoint::Checkpoint> find(checkpoint::CheckpointReader& reader,
                                                           const RequireSameRun& require_same_run);
  /// Of the run directory and, where the run goes on from its own, of the object store: newest first, and of one step
  /// the run directory's.
  [[nodiscard]] std::deque<std::string> candidates(const std::function<void()>& on_bytes);
  /// The candidate's path in the run directory: a copy is fetched.
  [[nodiscard]] std::string arrive(const std::string& candidate, const std::function<void()>& on_bytes);
  void report_copies();
  [[nodiscard]] std::string finish_writing();
  /// finish(): tries again until nothing fails, or gives up; returns the failure.
  [[nodiscard]] std::string insist(std::string failure, const LastCheckpointWait& wait);
  /// Collective: pauses. Why no more attempt is to be made; empty: try again.
  [[nodiscard]] std::string pause(std::chrono::milliseconds pause, RanTime& waited, const LastCheckpointWait& wait,
                                  bool stoppable);
  /// Throws where it cannot go on without what is damaged.
  void judge_damage(const std::string& notes, bool found) const;
  [[nodiscard]] static checkpoint::Targets targets_of(const std::vector<optim::OptimizerState>& states,
                                                      optim::Model& model);

  RunContext run_;
  checkpoint::FileSystem& files_;  // the file system that checkpoints are written to
  comm::StopPoll stop_;
  std::unique_ptr<checkpoint::RunDirectory> directory_;   // rank 0
  std::unique_ptr<checkpoint::CheckpointCopies> copies_;  // rank 0, with checkpoint.copy_to
  std::unique_ptr<checkpoint::CheckpointWriter> writer_;
  bool by_path_ = false;  ///< rank 0: the run begins with the checkpoint that --resume names
  std::int64_t begun_step_ = -1, resumed_at_ = -1, failures_ = 0;
  bool last_never_began_ = false, insists_ = false;
  struct {
    checkpoint::Progress progress;
    bool best = false;
  } last_;                     ///< the last one requested
  std::string newest_, best_;  // at the start of the run; best_ on rank 0 only
};

}  // namespace lockstep::train
