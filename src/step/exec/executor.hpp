// Executor: a graph compiled for one mode, run by the workers of this rank. In training, each finished bucket of
// gradients is handed to the reducer while later layers and micro-batches are still being computed.
#pragma once

#include <atomic>
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
#include "lockstep/choices.hpp"
#include "step/exec/device.hpp"
#include "step/exec/gather_layout.hpp"
#include "step/exec/kernel_set.hpp"
#include "step/exec/parameters.hpp"
#include "step/exec/worker.hpp"
#include "step/exec/worker_pool.hpp"

namespace lockstep::exec {

/// Sums over a micro-batch's samples, in sample order.
struct MicroBatchScalars {
  double loss = 0, count = 0;
  std::vector<double> metrics;  ///< the values and the count of each metric, in the graph's order
};

/// Values of a sample, without the count, that the graph's metric number `metric` has.
[[nodiscard]] std::size_t metric_values(const Graph& graph, std::size_t metric);
/// Scalars per micro-batch that the reducer gathers: the loss and the values of each metric, with their counts.
[[nodiscard]] int scalars_per_micro_batch(const Graph& graph);
[[nodiscard]] std::vector<double> scalars_of(const std::vector<MicroBatchScalars>& micro_batches);

/// The numbers of a step that every rank needs: sums of loss and metrics over all micro-batches, and the ranks' flags
/// and values.
struct StepSums {
  double loss = 0, count = 0;
  std::vector<double> metrics;  ///< the values and the count of each metric, in the graph's order
  std::uint32_t flags = 0;
  std::vector<double> rank_values;  ///< the same number of values from each rank, rank by rank
};

/// Adds up what the reducer gathered, in micro-batch order; `columns`: scalars_per_micro_batch().
[[nodiscard]] StepSums sums_of(comm::Scalars gathered, int columns);

/// For a part of a model: the order in which this rank's workers compute, and which ranks compute the other parts.
struct PartSchedule {
  /// Of the part's forward, or of its backward; all ranks of the part make the same.
  struct Wave {
    bool forward = true;
    int readers = 0;  ///< workers of this rank that have a task in it
  };
  std::vector<std::vector<Task>> tasks;  ///< by worker
  RankOfMicroBatch rank_of_micro_batch;
  MessageNumbers numbers;
  std::vector<Wave> waves;
  std::vector<int> backwards;  ///< the micro-batches in the order in which the part's ranks begin their backward
  std::vector<int> waves_of_gradients;  ///< by micro-batch: the number of its backward's wave among those of backwards
};

/// A rank's share of a training step, or of an evaluation.
struct Step {
  std::uint64_t number = 0;  ///< of evaluations, a count of their own: increases by one, so that a source that loads
                             ///< ahead has the next inputs ready
  std::span<const int> micro_batches;     ///< computed in this order
  float loss_scale = 1;                   ///< a power of two; the loss's gradients are multiplied by it
  const PartSchedule* of_part = nullptr;  ///< null: this rank has the whole model
  int waves = 0;                          ///< of a whole model: those of all ranks, if they divide parameters on GPUs
};

/// The per-sample results of one evaluated micro-batch.
struct EvaluatedMicroBatch {
  int micro_batch = 0;
  std::int64_t valid = 0;
  const float* loss = nullptr;  ///< [b]; null if the graph has no loss
  const float* count = nullptr;
  std::vector<std::pair<const float*, const float*>> metrics;  ///< values [b] or [b, k], and counts [b]
  const float* prediction = nullptr;                           ///< null if the graph has a loss, unless it keeps_output
};

struct ExecutorOptions {
  bool lowered = true;
  Recompute recompute = Recompute::never;
  std::vector<std::string> algorithms = {};  ///< see KernelSet
  bool keeps_weights = true;                 ///< see KernelSet
};

class Executor {
 public:
  /// Device and pool must outlive it.
  Executor(const Graph& graph, Mode mode, const Device& device, WorkerPool& pool, std::uint64_t seed,
           const ExecutorOptions& options = {});
  /// For a part, whose graph is already lowered.
  Executor(const PartOfModel& part, Mode mode, const Device& device, WorkerPool& pool, std::uint64_t seed,
           const ExecutorOptions& options = {});

  const Program& program() const { return program_; }
  /// The graph as computed, i.e. lowered. Its parameters and states are those of the original graph.
  const Graph& graph() const { return graph_; }
  ProgramSetup setup() const { return {graph_, program_, pool_.size(), part_}; }
  /// KernelSet::algorithms(), the same on all workers.
  const std::vector<std::string>& algorithms() const { return algorithms_; }
  std::int64_t micro_batch_samples() const { return setup().micro_batch_samples(); }

  /// On a GPU, before the first use(): sets what prepares the inputs there. An InputSource must then provide this
  /// filler's parts.
  void fill_inputs(std::shared_ptr<const InputFiller> filler) { filler_ = std::move(filler); }
  /// Sets the model to compute with from now on; it is read in place, so later changes are seen. If it is not on the
  /// device yet, it is placed there now (Device::place_model).
  void use(const ModelValues& model);
  /// Where the spans of train() are recorded from now on; null: nowhere.
  void trace(TraceRecorder* recorder) { trace_ = recorder; }

  /// Training: computes the micro-batches; results[i] belongs to step.micro_batches[i]. The reducer's step must have
  /// begun. The result is valid until the next call.
  const std::vector<MicroBatchScalars>& train(const Step& step, InputSource& source,
                                              const comm::GradientBuckets& buckets, comm::GradientReducer& reducer);
  /// Seconds of each micro-batch of the last train(), in the same order: kernels and handing over gradients, not
  /// waiting for inputs.
  const std::vector<double>& micro_batch_seconds() const { return micro_batch_seconds_; }
  /// Summed over workers.
  const MicroBatchTimes& times() const { return times_; }

  /// Computes `count` micro-batches of zeros, discards the results, and returns the seconds of each. Only for training,
  /// after use(). It has no side effects: no reduction, no statistics.
  [[nodiscard]] std::vector<double> try_micro_batches(int count, const comm::GradientBuckets& buckets);

  /// Inference: `sink` is called for each micro-batch, concurrently by several workers; of a part without the loss it
  /// has no results. Collective if ranks divide parameters on GPUs, or the model is cut. Once `stop` is set, nothing
  /// more is computed and `sink` is not called, but ranks still exchange what others need.
  void evaluate(const Step& step, InputSource& source, const std::function<void(const EvaluatedMicroBatch&)>& sink,
                const std::atomic<bool>* stop = nullptr);

 private:
  /// A worker, and what it keeps from micro-batch to micro-batch.
  struct Seat {
    std::unique_ptr<Worker> worker;
    EvaluatedMicroBatch evaluated;
  };

  void compile_with(const ExecutorOptions& options, Mode mode);
  void make_workers();
  /// Calls `done(seat, micro-batch, seconds)` for each micro-batch, concurrently.
  template <class Done>
  void run_tasks(const Step& step, StepCalls calls, const Done& done);
  void settle(std::uint64_t step) const;
  void begin_gathers(const Step& step, const comm::GradientBuckets* buckets);
  std::vector<GatherWave> waves_of_part(const PartSchedule& schedule) const;
  void add_up(const Worker& worker, MicroBatchScalars& sums) const;

  const PartOfModel* part_ = nullptr;  ///< null: the graph is a whole model
  Graph graph_;
  const Device& device_;
  WorkerPool& pool_;
  std::uint64_t seed_;
  Program program_;
  std::vector<KernelSet> kernels_;  ///< by worker, until the workers are made
  std::vector<std::string> algorithms_;
  std::shared_ptr<const InputFiller> filler_;  ///< null: inputs are copied
  std::vector<Seat> seats_;                    ///< by worker; empty before the first use()
  std::shared_ptr<const ModelView> model_;
  std::vector<UnitUse> gathered_uses_;  ///< of model_->gathers
  std::uint64_t version_ = 0;  ///< of the parameters: increases at the start of each step and evaluation, as they may
                               ///< have changed
  TraceRecorder* trace_ = nullptr;
  std::vector<MicroBatchScalars> results_;
  std::vector<double> micro_batch_seconds_;
  MicroBatchTimes times_;
};

}  // namespace lockstep::exec
