// Executor: runs a rank's plan. It computes the rank's shards on its workers and hands each finished bucket of
// gradients to the reducer while later layers and shards still compute.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/reduce/gradient_reducer.hpp"
#include "core/trace.hpp"
#include "exec/device.hpp"
#include "exec/gpu_memory.hpp"
#include "exec/gpu_tensors.hpp"
#include "exec/gradient_layout.hpp"
#include "exec/input_source.hpp"
#include "exec/parameters.hpp"
#include "exec/shard_runner.hpp"
#include "exec/shard_worker.hpp"
#include "exec/worker_pool.hpp"

namespace lockstep::exec {

/// Sums over a shard's samples, added in their order.
struct ShardScalars {
  double loss = 0, count = 0;
  std::vector<std::pair<double, double>> metrics;  ///< (value, count), in the graph's order
};

/// What a rank does in a step. Later: sends and receives between stages; now it computes shards, in this order.
struct Plan {
  std::span<const int> shards;
  float loss_scale = 1;  ///< a power of two; the gradients that the loss makes are multiplied by it
};

struct ShardTimes {
  double compute_seconds = 0;  ///< kernels only, added over workers
  double data_seconds = 0;     ///< waiting for inputs, added over workers
  double merge_seconds = 0;    ///< handing over buckets, added over workers
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

/// Where the parameters and states are. The host's outlive their use.
struct ModelValues {
  const TensorBlock &parameters, &states;
  std::shared_ptr<GpuParameters> on_gpu = {};  ///< null: not yet, or the device is the CPU
};

struct ExecutorOptions {
  bool lowered = true;
  bool recompute = false;                    ///< activations that are cheap to make again are not kept for backward
  std::vector<std::string> algorithms = {};  ///< of KernelSet
};

/// A graph lowered and compiled for one mode on the workers of this rank. The pool must outlive it.
class Executor {
 public:
  Executor(const Graph& graph, Mode mode, Device device, WorkerPool& pool, std::uint64_t seed,
           const ExecutorOptions& options = {});

  [[nodiscard]] const Program& program() const { return program_; }
  /// As it is computed: lowered. Its parameters and states are those of the graph that it was made of.
  [[nodiscard]] const Graph& graph() const { return graph_; }
  /// KernelSet::algorithms(), the same on all workers.
  [[nodiscard]] const std::vector<std::string>& algorithms() const { return algorithms_; }
  /// On a GPU, before the first use(): who makes the inputs there. An InputSource then gives what it asks for.
  void fill_inputs(std::shared_ptr<const InputFiller> filler) { filler_ = std::move(filler); }
  /// What it computes with from now on, read where it is, whatever changes it. Where it is not on the rank's GPU yet,
  /// it is copied there now; throws Error(configuration) where it does not fit with what a shard needs.
  void use(const ModelValues& model);
  /// What it still has to allocate on its GPU, beside parameters and states.
  [[nodiscard]] std::vector<MemoryNeed> gpu_needs() const;
  [[nodiscard]] std::int64_t shard_samples() const;

  /// Where the spans of train() go from now on; null: nowhere.
  void trace(TraceRecorder* recorder) { trace_ = recorder; }

  /// Training: computes the plan's shards; results[i] belongs to plan.shards[i]. The reducer's step has begun.
  /// The result stands until the next call.
  const std::vector<ShardScalars>& train(const Plan& plan, std::uint64_t step, InputSource& source,
                                         const GradientLayout& layout, comm::GradientReducer& reducer);

  /// Seconds of each shard of the last train(), in the order of its plan: kernels and handing over, not the inputs.
  [[nodiscard]] const std::vector<double>& shard_seconds() const { return shard_seconds_; }

  /// Computes `count` shards of zeros for nobody and returns the seconds of each. Training; use() has come before. It
  /// changes nothing: no reduction, no statistics.
  [[nodiscard]] std::vector<double> try_shards(int count, const GradientLayout& layout);

  /// Inference: `sink` is called for each shard, by several workers at once. `number`: what the source takes for the
  /// step; one more each time, so that a source that loads ahead has the next inputs there.
  void evaluate(std::uint64_t number, const std::vector<int>& shards, InputSource& source,
                const std::function<void(const EvaluatedShard&)>& sink);

  [[nodiscard]] const ShardTimes& times() const { return times_; }

 private:
  struct Worker {
    std::unique_ptr<ShardWorker> computes;
    ShardInputs inputs;
    EvaluatedShard evaluated;
    ShardTimes times;
  };

  [[nodiscard]] std::shared_ptr<GpuParameters> copy_to_gpu(const ModelValues& model) const;
  void use_gpu();
  /// The parameters may have changed since.
  void begin();
  [[nodiscard]] StepContext context(std::uint64_t step, int shard) const;
  [[nodiscard]] ShardCall call(const ShardInputs& inputs, const StepContext& step) const;
  void train_shard(Worker& worker, std::uint64_t step, int shard, InputSource& source, const GradientLayout& layout,
                   comm::GradientReducer& reducer, ShardScalars& sums, double& seconds);
  void add_up(const Worker& worker, ShardScalars& sums) const;
  void collect_times();

  Graph graph_;  ///< as it is computed
  Device device_;
  WorkerPool& pool_;
  std::uint64_t seed_;
  Program program_;
  std::vector<std::string> algorithms_;
  std::shared_ptr<const InputFiller> filler_;  ///< null: inputs are copied
  std::vector<KernelSet> gpu_kernels_;         ///< until use() has made the workers of a GPU
  std::vector<Worker> workers_;
  std::shared_ptr<GpuParameters> gpu_parameters_;  ///< null on the CPU
  std::vector<const float*> parameters_, states_;  ///< where kernels read them
  std::vector<const void*> low_precision_;         ///< of a GPU: the low-precision weights
  std::uint64_t version_ = 0;
  float loss_scale_ = 1;
  TraceRecorder* trace_ = nullptr;
  std::vector<ShardScalars> results_;
  std::vector<double> shard_seconds_;
  ShardTimes times_;
};

}  // namespace lockstep::exec
