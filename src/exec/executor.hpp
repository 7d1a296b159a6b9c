// Executor: a graph compiled for one mode, run on the workers of this rank. In training each finished bucket of
// gradients is handed to the reducer while later layers and shards still compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "core/input_source.hpp"
#include "core/trace.hpp"
#include "exec/device.hpp"
#include "exec/kernel_set.hpp"
#include "exec/parameters.hpp"
#include "exec/part_worker.hpp"
#include "exec/worker.hpp"
#include "exec/worker_pool.hpp"
#include "lockstep/choices.hpp"

namespace lockstep::exec {

/// Sums over a shard's samples, added in their order.
struct ShardScalars {
  double loss = 0, count = 0;
  std::vector<std::pair<double, double>> metrics;  ///< (value, count), in the graph's order
};

/// What shards give to the reducer: of each the loss and each metric, with their counts.
[[nodiscard]] constexpr int scalars_per_shard(std::size_t metrics) {
  return 2 + 2 * static_cast<int>(metrics);
}
[[nodiscard]] std::vector<double> scalars_of(const std::vector<ShardScalars>& shards);

/// The numbers of a step that every rank needs: sums of loss and metrics over all shards, and what the ranks ask for.
struct StepSums {
  double loss = 0, count = 0;
  std::vector<std::pair<double, double>> metrics;  ///< (value, count), in the graph's order
  std::uint32_t flags = 0;
  std::vector<double> rank_values;  ///< as many of each rank, rank by rank
};

/// Adds what the reducer gathered, in the order of the shards.
[[nodiscard]] StepSums sums_of(comm::Scalars gathered, std::size_t metrics);

/// Of a part of a model: in which order the workers of this rank compute, and who computes what in other parts.
struct PartSchedule {
  std::vector<std::vector<PartTask>> tasks;  ///< by worker
  RankOfShard rank_of_shard;
};

/// A rank's part of a step.
struct TrainStep {
  std::uint64_t number = 0;
  std::span<const int> shards;            ///< computed in this order
  float loss_scale = 1;                   ///< a power of two; the gradients that the loss makes are multiplied by it
  const PartSchedule* of_part = nullptr;  ///< null: this rank has the whole model
};

/// Seconds, added over workers.
struct ShardTimes {
  double compute_seconds = 0;  ///< kernels only
  double data_seconds = 0;     ///< waiting for inputs
  double merge_seconds = 0;    ///< handing over buckets
  PartWaits part_waits;        ///< of a part
};

/// The per-sample results of one evaluated shard.
struct EvaluatedShard {
  int shard = 0;
  std::int64_t valid = 0;
  const float* loss = nullptr;  ///< [b]; null where the graph has no loss
  const float* count = nullptr;
  std::vector<std::pair<const float*, const float*>> metrics;
  const float* prediction = nullptr;  ///< null where the graph has a loss
};

struct ExecutorOptions {
  bool lowered = true;
  Recompute recompute = Recompute::never;
  std::vector<std::string> algorithms = {};  ///< of KernelSet
  bool keeps_weights = true;                 ///< of KernelSet
};

class Executor {
 public:
  /// Device and pool outlive it.
  Executor(const Graph& graph, Mode mode, const Device& device, WorkerPool& pool, std::uint64_t seed,
           const ExecutorOptions& options = {});
  /// Of a part, whose graph is lowered already.
  Executor(const PartOfModel& part, Mode mode, const Device& device, WorkerPool& pool, std::uint64_t seed,
           const ExecutorOptions& options = {});

  [[nodiscard]] const Program& program() const { return program_; }
  /// As it is computed: lowered. Its parameters and states are those of the graph that it was made of.
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] ProgramSetup setup() const { return {graph_, program_, pool_.size(), part_}; }
  /// KernelSet::algorithms(), the same on all workers.
  [[nodiscard]] const std::vector<std::string>& algorithms() const { return algorithms_; }
  [[nodiscard]] std::int64_t shard_samples() const { return setup().shard_samples(); }

  /// On a GPU, before the first use(): who makes the inputs there. An InputSource then gives what it asks for.
  void fill_inputs(std::shared_ptr<const InputFiller> filler) { filler_ = std::move(filler); }
  /// What it computes with from now on, read where it is, whatever changes it. Where the device does not have it yet,
  /// it is placed there now (Device::place_model).
  void use(const ModelValues& model);
  /// Where the spans of train() go from now on; null: nowhere.
  void trace(TraceRecorder* recorder) { trace_ = recorder; }

  /// Training: computes the shards; results[i] belongs to step.shards[i]. The reducer's step has begun. The result
  /// stands until the next call.
  const std::vector<ShardScalars>& train(const TrainStep& step, InputSource& source,
                                         const comm::GradientBuckets& buckets, comm::GradientReducer& reducer);
  /// Seconds of each shard of the last train(), in its order: kernels and handing over, not the inputs.
  [[nodiscard]] const std::vector<double>& shard_seconds() const { return shard_seconds_; }
  [[nodiscard]] const ShardTimes& times() const { return times_; }

  /// Computes `count` shards of zeros for nobody and returns the seconds of each. Training; use() has come before. It
  /// changes nothing: no reduction, no statistics.
  [[nodiscard]] std::vector<double> try_shards(int count, const comm::GradientBuckets& buckets);

  /// Inference: `sink` is called for each shard, by several workers at once. `number`: what the source takes for the
  /// step; one more each time, so that a source that loads ahead has the next inputs there.
  void evaluate(std::uint64_t number, const std::vector<int>& shards, InputSource& source,
                const std::function<void(const EvaluatedShard&)>& sink);
  /// The same of a part. Shards of one that has no loss come without results.
  void evaluate(std::uint64_t number, const PartSchedule& schedule, InputSource& source,
                const std::function<void(const EvaluatedShard&)>& sink);

 private:
  /// A worker, and what is kept for it from shard to shard.
  struct Seat {
    std::unique_ptr<Worker> worker;
    std::unique_ptr<PartWorker> part_worker;  ///< in its place, where the model is cut into parts
    ShardInputs inputs;
    EvaluatedShard evaluated;
    ShardTimes times;
  };

  void compile_with(const ExecutorOptions& options, Mode mode);
  void make_workers();
  [[nodiscard]] StepContext context(std::uint64_t step, int shard) const;
  void train_shard(int worker, const TrainStep& step, InputSource& source, GradientTarget target, ShardScalars& sums,
                   double& seconds);
  void train_part(const TrainStep& step, InputSource& source, const comm::GradientBuckets& buckets,
                  comm::GradientReducer& reducer);
  [[nodiscard]] PartCalls part_calls(std::uint64_t step, const PartSchedule& schedule, InputSource& source) const;
  void settle(std::uint64_t step) const;
  template <class Result>
  void add_up(const Result& result, std::int64_t valid, ShardScalars& sums) const;
  template <class Result>
  void show(const Result& result, int shard, std::int64_t valid, EvaluatedShard& evaluated) const;

  const PartOfModel* part_ = nullptr;  ///< null: the graph is whole
  Graph graph_;
  const Device& device_;
  WorkerPool& pool_;
  std::uint64_t seed_;
  Program program_;
  std::vector<KernelSet> kernels_;  ///< of each worker, until it is made
  std::vector<std::string> algorithms_;
  std::shared_ptr<const InputFiller> filler_;  ///< null: inputs are copied
  std::vector<Seat> seats_;                    ///< by worker; empty before the first use()
  std::shared_ptr<const ModelView> model_;
  std::uint64_t version_ = 0;  ///< of the parameters: they may have changed whenever a step or an evaluation begins
  TraceRecorder* trace_ = nullptr;
  std::vector<ShardScalars> results_;
  std::vector<double> shard_seconds_;
  ShardTimes times_;
};

}  // namespace lockstep::exec
