// Engine: what computes the steps of a run on one rank: workers and the program that they run, the reducer of their
// gradients, the updater, the model, and the loader that feeds them.
//
// It is made in the order of its functions: what the ranks' programs turned out to be is compared before the model is
// there, and the model is read before it is placed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "data/loader.hpp"
#include "exec/executor.hpp"
#include "exec/worker_pool.hpp"
#include "optim/updater.hpp"
#include "train/backend.hpp"
#include "train/run.hpp"

namespace lockstep::train {

struct Engine {
  /// The workers and their program. Every rank calls it, and `run` outlives it, as with all that follow.
  Engine(const Run& of_run, int workers);
  /// Reducer, updater, and the model with its first values.
  void make_model();
  /// Puts the model, and the data where they fit, where this rank computes. `shards`: of this rank.
  void place_model(int shards, bool evaluates);
  /// The training data, from this step on. Nothing is read before the loader is assigned shards.
  void make_loader(std::int64_t first_step);

  /// Of this rank's part of the model: what starts with a step, and what ends the reduction of its gradients and
  /// gathers `own` scalars of all ranks (comm::GradientReducer).
  void begin_step(std::uint64_t step, const std::vector<comm::ShardAssignment>& assignments);
  [[nodiscard]] comm::Scalars finish(const std::function<comm::OwnScalars()>& own);

  /// How the program was compiled, and is to be compiled again to compute the same bits.
  [[nodiscard]] exec::ExecutorOptions how_to_execute(const std::vector<std::string>& algorithms) const;
  /// That this rank sends in a step.
  [[nodiscard]] double bytes_of_step(const comm::ShardAssignment& assignment) const;
  /// Parameters that other hosts have fetched from this rank since the start.
  [[nodiscard]] std::uint64_t bytes_fetched_by_others() const { return slices ? slices->bytes_fetched_by_others() : 0; }

  const Run& run;
  exec::WorkerPool pool;
  std::unique_ptr<exec::Executor> executor;
  comm::GradientBuckets buckets;
  std::unique_ptr<comm::GradientReducer> reducer;
  std::unique_ptr<comm::GradientReducer> scalars;  ///< of all ranks, without gradients; null: the reducer has all ranks
  std::unique_ptr<optim::ModelSlices> slices;      ///< null: every rank keeps all of its model, or part
  std::unique_ptr<optim::Updater> updater;
  optim::Model model;
  PlacedData placed_data;
  std::unique_ptr<data::Loader> loader;
};

}  // namespace lockstep::train
