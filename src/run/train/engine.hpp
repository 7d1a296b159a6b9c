// Engine: what computes the steps of a run on one rank: workers and the program that they run, the reducer of their
// gradients, the updater, the model, and the loader that feeds them.
//
// Its functions are called in the order of their declaration: the ranks' programs are compared before the model is
// made, and the model is read before it is placed on the device.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "data/loader.hpp"
#include "run/train/backend.hpp"
#include "run/train/run.hpp"
#include "step/exec/executor.hpp"
#include "step/exec/worker_pool.hpp"
#include "step/optim/updater.hpp"

namespace lockstep::train {

struct Engine {
  /// The workers and their program. Collective, and `run` must outlive the engine; both hold for the functions below,
  /// too.
  Engine(const Run& of_run, int workers);
  /// Makes the reducer, the updater, and the model with its initial values.
  void make_model();
  /// Moves the model, and the data if they fit, to the device. `own`: of the first step, for this rank's part.
  void place_model(const comm::MicroBatchAssignment& own, bool evaluates);
  /// Makes the loader of the training data, from this step on. Nothing is read before the loader is assigned
  /// micro-batches.
  void make_loader(std::int64_t first_step);

  /// For this rank's part of the model: begin_step() starts the reduction of a step's gradients; finish() completes it
  /// and gathers the `own` scalars of all ranks (comm::GradientReducer). `assignments`: by part; `own`: that of this
  /// rank's part, with the order in which gradients come.
  void begin_step(std::uint64_t step, const std::vector<comm::MicroBatchAssignment>& assignments,
                  const comm::MicroBatchAssignment& own);
  [[nodiscard]] comm::Scalars finish(const std::function<comm::OwnScalars()>& own);

  comm::ReducerOptions reducer_options() const;
  /// The options with which another executor computes the same bits.
  exec::ExecutorOptions how_to_execute(const std::vector<std::string>& algorithms) const;
  /// Bytes that this rank sends in a step, as planned: of gradients and parameters, and to other parts of the model.
  double bytes_of_step(const comm::MicroBatchAssignment& assignment) const;
  /// What it has sent in all steps since the start.
  double bytes_sent() const;
  /// Bytes of parameters that other hosts have fetched from this rank since the start.
  std::uint64_t bytes_fetched_by_others() const { return slices ? slices->bytes_fetched_by_others() : 0; }

  const Run& run;
  exec::WorkerPool pool;
  std::unique_ptr<exec::Executor> executor;
  comm::GradientBuckets buckets;
  std::unique_ptr<comm::GradientReducer> reducer;
  std::unique_ptr<comm::GradientReducer> scalars;  ///< over all ranks, without gradients; null: the reducer spans all
                                                   ///< ranks
  std::unique_ptr<optim::ModelSlices> slices;      ///< null: every rank keeps its whole model, or part of the model
  std::unique_ptr<optim::Updater> updater;
  optim::Model model;
  PlacedData placed_data;
  std::unique_ptr<data::Loader> loader;
};

}  // namespace lockstep::train
