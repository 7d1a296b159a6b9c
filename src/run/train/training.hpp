// Training: one run on one rank, from the initial parameters to the last checkpoint. lockstep/trainer.hpp calls it.
//
// It is only the loop. Its components have files of their own: run (what is constant), engine (what computes),
// start_check (what ranks compare), balancing (who computes what), checkpointing, validation (evaluation, early stop),
// step_flags (requests between ranks). Events and the result of a run are in training_events.cpp; how it
// begins, in training_setup.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/spans.hpp"
#include "lockstep/callback.hpp"
#include "lockstep/trainer.hpp"
#include "observe/observers.hpp"
#include "run/checkpoint/saved_model.hpp"
#include "run/checkpoint/whole_model.hpp"
#include "run/train/bad_samples.hpp"
#include "run/train/balancing.hpp"
#include "run/train/checkpointing.hpp"
#include "run/train/content_check.hpp"
#include "run/train/engine.hpp"
#include "run/train/run.hpp"
#include "run/train/validation.hpp"
#include "step/exec/executor.hpp"

namespace lockstep::train {

/// Installs handlers for its lifetime; only one may exist at a time.
class SignalGuard {
 public:
  /// `passed_on`: see StopCount.
  explicit SignalGuard(bool active, bool passed_on = false);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  bool asked() const;

 private:
  bool active_;
};

using CallbackMoment = void (Callback::*)(TrainingState&);

/// The state of a run besides what checkpoints store (checkpoint::Progress).
struct Reached {
  std::int64_t first_step = 0;
  bool resumed = false, interrupted = false;
  bool caught_up = false;  ///< the evaluation that the checkpoint said to be due has been made
  Clock::time_point loop_start;
  double first_micro_batch_seconds = 0, training_seconds = 0;
  std::optional<checkpoint::Initialized> initialized;
  double reported_wait = 0;       ///< seconds of waiting for data already reported by step events
  double bytes_by_formula = 0;    ///< that this rank has sent, according to its plan
  double bytes_of_next_step = 0;  ///< the same for one step
};

/// About the last step, or the current one.
struct LastStep {
  double loss = 0;
  double learning_rate = 0;
  double loss_scale = 0;      ///< factor of the mean loss; 0: losses are not scaled
  double gradient_scale = 1;  ///< factor of the gradients of the summed losses
  optim::UpdateResult updated;
  double update_seconds = 0;
};

class Training {
 public:
  Training(const JobFile& job, Communicator& communicator, const Registries& registries, const TrainerOptions& options,
           const DataSets& own);
  TrainResult run();

 private:
  // training_setup.cpp
  void compare_ranks();
  void begin_with_model();
  /// Sets the schedule of the parts, and the order of gradients, to those of the current assignment.
  void order_gradients();
  void place_model();
  void start_observers();

  void step();
  [[nodiscard]] exec::Step feed();
  const std::vector<exec::MicroBatchScalars>& compute(observe::StepScope& step, const exec::Step& work);
  [[nodiscard]] exec::StepSums reduce(observe::StepScope& step, const std::vector<exec::MicroBatchScalars>& losses);
  void update(observe::StepScope& step, const exec::StepSums& sums);
  void observe(const observe::StepScope& step, const exec::StepSums& sums);

  void assign_micro_batches(std::uint64_t from_step);
  void trace_next_step();
  [[nodiscard]] double checked_loss(const exec::StepSums& sums);
  void after_step(const exec::StepSums& sums);
  void complete_step(bool evaluates, std::uint32_t flags);
  void call_back(CallbackMoment moment);
  [[nodiscard]] bool evaluate();
  void write_checkpoint(bool best);
  void finish_checkpoints();
  bool is_done() const { return progress_.finished || progress_.step >= run_.steps; }
  StopRequest stop_request() const;
  comm::StopPoll stop_poll() const;
  std::uint32_t stop_requests() const;  ///< see step_flags.hpp
  [[nodiscard]] bool is_stop_requested();
  bool lacks_checkpoint() const;
  bool is_period_over(const Span& every) const;

  // training_events.cpp
  TrainResult make_result() const;
  std::map<std::string, double> metrics_of(const exec::StepSums& sums) const;
  void emit_start() const;
  void emit_step(const exec::StepSums& sums);
  void emit_end(TrainResult& result);
  std::string outcome(const TrainResult& result) const;
  double part_wait_seconds() const;
  void gather_work_of_ranks(events::End& event);
  void add_waiting(events::End& event) const;

  Run run_;  ///< what is constant

  // What acts on it.
  SignalGuard signals_;
  ContentCheck content_check_;
  BadSamples bad_samples_;
  Balancing balancing_;
  exec::PartSchedule part_schedule_;    ///< if the model is cut: who computes what, in which order
  comm::MicroBatchAssignment reduced_;  ///< of this rank's part, with the order in which gradients come
  Engine engine_;
  checkpoint::WholeModel whole_model_;
  Validation validation_;
  std::unique_ptr<Checkpointing> checkpointing_;

  // The state of the run.
  checkpoint::Progress progress_;  ///< as checkpoints store it
  Reached reached_;                ///< the rest
  LastStep last_;
  TrainingState state_;  ///< as callbacks see it

  observe::Observers observers_;  ///< last, because its threads read the members above
};

}  // namespace lockstep::train
