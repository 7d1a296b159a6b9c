// Training: one run on one rank, from the first parameter to the last checkpoint. lockstep/trainer.hpp calls it.
//
// It is the loop and nothing else; its parts have a file each: start_facts (what ranks compare), balancing (who
// computes what), checkpointing, step_flags (what ranks ask of each other), validation (evaluation, early
// stop), signals, training_events (what the run says).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/reduce/gradient_reducer.hpp"
#include "core/spans.hpp"
#include "data/loader.hpp"
#include "exec/executor.hpp"
#include "exec/step_scalars.hpp"
#include "input/prepared_data.hpp"
#include "lockstep/trainer.hpp"
#include "observe/observers.hpp"
#include "optim/learning_rate.hpp"
#include "optim/updater.hpp"
#include "train/backend.hpp"
#include "train/bad_samples.hpp"
#include "train/balancing.hpp"
#include "train/callbacks.hpp"
#include "train/checkpointing.hpp"
#include "train/content_check.hpp"
#include "train/run_context.hpp"
#include "train/signals.hpp"
#include "train/validation.hpp"

namespace lockstep::train {

class Training {
 public:
  Training(const JobFile& job, Communicator& communicator, const Registries& registries, const TrainerOptions& options,
           const DataSets& own);
  TrainResult run();

 private:
  [[nodiscard]] exec::ExecutorOptions how_to_execute(const std::vector<std::string>& algorithms) const;
  void make_executor();
  void make_step();
  void put_model();
  void make_loader();
  void use_shares(std::uint64_t from_step);
  void start_observers();

  void step();
  [[nodiscard]] exec::TrainStep feed();
  const std::vector<exec::ShardScalars>& compute(observe::StepScope& step, const exec::TrainStep& work);
  [[nodiscard]] exec::StepSums reduce(observe::StepScope& step, const std::vector<exec::ShardScalars>& losses);
  void update(observe::StepScope& step, const exec::StepSums& sums);
  void observe(const observe::StepScope& step, const exec::StepSums& sums);

  void trace_next_step();
  [[nodiscard]] double checked_loss(const exec::StepSums& sums) const;
  void after_step(const exec::StepSums& sums);
  void call_back(CallbackMoment moment);
  [[nodiscard]] bool evaluate();
  void write_checkpoint(bool best);
  void finish_checkpoints();
  [[nodiscard]] TrainResult make_result() const;
  [[nodiscard]] bool is_done() const { return progress_.finished || progress_.step >= steps_; }
  [[nodiscard]] std::uint32_t stop_requests() const;  ///< of step_flags.hpp
  [[nodiscard]] bool is_period_over(const Span& every) const;
  [[nodiscard]] std::map<std::string, double> metrics_of(const exec::StepSums& sums) const;
  [[nodiscard]] std::int64_t keep_every() const;
  void emit_start() const;
  void emit_step(const exec::StepSums& sums);
  void emit_end(TrainResult& result);
  [[nodiscard]] std::string outcome(const TrainResult& result) const;
  void gather_work_of_ranks(events::End& event);
  void add_waiting(events::End& event) const;

  const JobFile& job_;
  CanonicalJob canonical_;
  Communicator& communicator_;
  const Registries& registries_;
  TrainerOptions options_;
  std::vector<events::Sink*> sinks_;  ///< that get the events, on rank 0
  std::unique_ptr<Backend> backend_;
  RunContext context_;
  Clock::time_point start_, loop_start_;

  input::PreparedData data_;
  ContentCheck content_check_;
  BadSamples bad_samples_;
  Graph graph_;
  double targets_in_mean_;  ///< of the loss; fp16 only
  std::int64_t steps_per_epoch_, steps_;
  Balancing balancing_;
  std::unique_ptr<exec::WorkerPool> pool_;
  std::unique_ptr<exec::Executor> executor_;
  exec::GradientLayout layout_;
  comm::BucketLayout bucket_layout_;
  std::unique_ptr<comm::GradientReducer> reducer_;
  std::unique_ptr<optim::Updater> updater_;
  optim::LearningRate learning_rate_;
  optim::Model model_;
  checkpoint::Progress progress_;
  std::unique_ptr<Checkpointing> checkpointing_;
  PlacedData placed_data_;
  std::unique_ptr<data::Loader> loader_;
  std::unique_ptr<Validation> validation_;
  SignalGuard signals_;
  double first_shard_seconds_ = 0;
  std::int64_t first_step_ = 0;
  bool resumed_ = false, interrupted_ = false;
  double bytes_of_step_ = 0, bytes_by_formula_ = 0;  // sent by this rank
  double training_seconds_ = 0, reported_wait_ = 0;
  /// Of the last step, or the one that is going on.
  struct {
    double loss = 0;
    double learning_rate = 0;
    double loss_scale = 0;      ///< of the mean loss; 0: losses are not scaled
    double gradient_scale = 1;  ///< what the gradients of its summed losses were multiplied by
    optim::UpdateResult updated;
    double update_seconds = 0;
  } last_;
  TrainingState state_;                            ///< as callbacks see it
  std::unique_ptr<observe::Observers> observers_;  ///< last: its threads read the above
};

}  // namespace lockstep::train
