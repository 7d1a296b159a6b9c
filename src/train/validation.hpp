// Validation while training: evaluates, remembers the best value of the watched metric, and stops early.
#pragma once

#include <memory>
#include <string>

#include "exec/worker_pool.hpp"
#include "train/checkpoint.hpp"
#include "train/evaluation.hpp"
#include "train/prepared_data.hpp"
#include "train/run_context.hpp"

namespace lockstep::train {

class Validation {
 public:
  /// References must outlive it. Nothing is read before the first run().
  Validation(const RunContext& run, const PreparedData& data, const Graph& graph, exec::WorkerPool& pool);

  /// The job has a validation set and does not say `evaluate: never`.
  [[nodiscard]] bool wanted() const;
  /// Evaluates and sets progress.metrics; every rank calls it. Returns whether the watched metric is the best so
  /// far; sets progress.finished when it has not improved for `early_stop.patience` evaluations.
  bool run(const Model& model, Progress& progress);

 private:
  [[nodiscard]] const std::string& watched_metric() const;
  [[nodiscard]] bool is_better(double value, const Progress& progress) const;
  bool note_best(Progress& progress) const;

  RunContext run_;
  const PreparedData& data_;
  const Graph& graph_;
  exec::WorkerPool& pool_;
  std::unique_ptr<Evaluation> evaluation_;
};

}  // namespace lockstep::train
