// Validation during training: evaluates, remembers the best values of the watched metrics, and stops early.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/input/prepared_data.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/train/balancing.hpp"
#include "run/train/evaluation.hpp"
#include "run/train/run_context.hpp"
#include "step/exec/worker_pool.hpp"
#include "step/optim/learning_rate.hpp"

namespace lockstep::train {

class Validation {
 public:
  /// References must outlive it. Nothing is read before the first run(). `lowered`: as for training.
  Validation(const RunContext& run, const input::PreparedData& data, const Graph& graph, const ModelParts& parts,
             const optim::LearningRate& learning_rate, exec::WorkerPool& pool, bool lowered);

  /// What prepares the inputs on a GPU, if the set is there.
  void fill_inputs(std::shared_ptr<const exec::InputFiller> filler) { filler_ = std::move(filler); }
  /// Whether the job has a validation set and does not say `evaluate: never`.
  bool wanted() const;
  /// Evaluates, with the micro-batch assignment of `balancing`, and sets progress.metrics. Collective. Returns whether
  /// the metric of `checkpoint.best` is the best so far; sets progress.finished if the metric of `early_stop` has not
  /// improved for `patience` evaluations, and notes what a schedule that follows evaluations remembers. If `stop` asks
  /// for an end on any rank, returns nullopt and changes nothing; no other run may follow.
  std::optional<bool> run(const exec::ModelValues& model, const Balancing& balancing, checkpoint::Progress& progress,
                          const comm::StopPoll& stop);
  /// A warning for each watched metric that no evaluation has given a finite value. Empty before the first one.
  std::vector<std::string> never_measured(const checkpoint::Progress& progress) const;

 private:
  bool note(const std::string& metric, double min_delta, const checkpoint::Progress& progress,
            checkpoint::BestValue& best) const;

  RunContext run_;
  const input::PreparedData& data_;
  const Graph& graph_;
  const ModelParts& parts_;
  const optim::LearningRate& learning_rate_;
  exec::WorkerPool& pool_;
  bool lowered_;
  std::shared_ptr<const exec::InputFiller> filler_;
  std::unique_ptr<Evaluation> evaluation_;
};

}  // namespace lockstep::train
