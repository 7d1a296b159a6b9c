// Callbacks: your own code in the training loop. It sees how training goes, may end it, and may scale the learning
// rate.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace lockstep {

/// The state of a run after a step, the same on every rank, and what a callback may request.
class TrainingState {
 public:
  std::int64_t step = 0;                    ///< steps done, those before a resume included
  std::int64_t steps = 0;                   ///< of the whole run
  std::int64_t epoch = 0;                   ///< the one this step was part of, from 1
  double loss = 0;                          ///< mean of this step
  double learning_rate = 0;                 ///< of this step
  std::map<std::string, double> metrics;    ///< of this step, on the training samples: "accuracy"
  std::map<std::string, double> evaluated;  ///< of the last evaluation: "loss", "accuracy"; empty before the first

  /// Ends the run after this step, as early stopping does: a last checkpoint says that it is finished.
  void stop(bool stopped = true) { stopped_ = stopped; }
  bool is_stopped() const { return stopped_; }
  /// Writes a checkpoint of this step, besides those that the job asks for, unless it never writes one.
  void checkpoint(bool wanted = true) { wants_checkpoint_ = wanted; }
  bool wants_checkpoint() const { return wants_checkpoint_; }
  /// From the next step on, the schedule's learning rate is multiplied by this. Checkpoints keep it.
  void set_learning_rate_factor(double factor) { learning_rate_factor_ = factor; }
  double learning_rate_factor() const { return learning_rate_factor_; }

 private:
  bool stopped_ = false, wants_checkpoint_ = false;
  double learning_rate_factor_ = 1;
};

/// Your own code in the training loop. Each rank has its own object and calls it with the same numbers; only the
/// requests made on rank 0 count, and they apply to all ranks. So the result has the same bits on any number of ranks
/// if the requests depend on these numbers alone.
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void after_step(TrainingState& /*state*/) {}
  /// After the step's evaluation, if it has one.
  virtual void after_evaluation(TrainingState& /*state*/) {}
  /// After the last step of an epoch, and after its evaluation, if it has one.
  virtual void after_epoch(TrainingState& /*state*/) {}
};

}  // namespace lockstep
