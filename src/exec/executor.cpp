#include "exec/executor.hpp"

#include "core/spans.hpp"
#include "exec/cpu_worker.hpp"
#include "exec/gpu_worker.hpp"
#include "graph/lowering/lower.hpp"
#include "graph/precision.hpp"
#include "graph/weight_order.hpp"
#include "lockstep/error.hpp"

namespace lockstep::exec {

namespace {

/// A bucket's way from a worker to the reducer, timed.
class ReducerSink final : public BucketSink {
 public:
  ReducerSink(comm::GradientReducer& reducer, int shard, TraceRecorder* trace, std::uint64_t step, int lane)
      : reducer_(reducer), shard_(shard), trace_(trace), step_(step), lane_(lane) {}
  comm::GradientBuffer buffer(int bucket) override { return reducer_.buffer(shard_, bucket); }
  void ready(int bucket) override {
    const TraceScope handing(trace_, "hand over", step_, lane_, bucket);
    const auto start = Clock::now();
    reducer_.ready(shard_, bucket);
    seconds_ += seconds_since(start);
  }
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  comm::GradientReducer& reducer_;
  int shard_;
  TraceRecorder* trace_;
  std::uint64_t step_;
  int lane_;
  double seconds_ = 0;
};

double sum_in_order(const float* values, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(values[i]);
  return sum;
}

}  // namespace

Executor::Executor(const Graph& graph, Mode mode, Device device, WorkerPool& pool, std::uint64_t seed,
                   const ExecutorOptions& options)
    : graph_(options.lowered ? lower(graph, {device.kind(), device.gpu_kernels.get()}) : graph),
      device_(std::move(device)),
      pool_(pool),
      seed_(seed) {
  if (device_.is_gpu()) use_low_precision_weights(graph_);
  std::vector<KernelSet> sets;
  for (int i = 0; i < pool_.size(); ++i) {
    sets.emplace_back(graph_, mode, device_, static_cast<std::size_t>(i), options.algorithms);
  }
  CompileOptions compiled{.in_place = options.lowered};
  if (options.recompute) {
    compiled.can_recompute = [&](std::int32_t node) { return sets.front().at(node)->can_recompute(); };
  }
  program_ = compile(
      graph_, mode, [&](std::int32_t node) { return sets.front().workspace_bytes(node); }, compiled);
  algorithms_ = sets.front().algorithms();
  for (const KernelSet& set : sets) {
    LOCKSTEP_CHECK(set.algorithms() == algorithms_, "a library proposes one algorithm for the same sizes on one GPU");
  }
  workers_.resize(sets.size());
  if (device_.is_gpu()) {
    gpu_kernels_ = std::move(sets);
    return;
  }
  for (std::size_t i = 0; i < sets.size(); ++i) {
    workers_[i].computes = std::make_unique<CpuWorker>(program_, std::move(sets[i]));
  }
}

void Executor::use(const ModelValues& model) {
  parameters_.clear();
  states_.clear();
  low_precision_.clear();
  if (device_.is_gpu()) {
    gpu_parameters_ = model.on_gpu ? model.on_gpu : copy_to_gpu(model);
    return use_gpu();
  }
  for (std::size_t i = 0; i < model.parameters.size(); ++i) parameters_.push_back(model.parameters.at(i).data());
  for (std::size_t i = 0; i < model.states.size(); ++i) states_.push_back(model.states.at(i).data());
}

std::shared_ptr<GpuParameters> Executor::copy_to_gpu(const ModelValues& model) const {
  auto needs = gpu_needs();
  const auto of_parameters = GpuParameters::needs(graph_, model.parameters, model.states);
  needs.insert(needs.begin(), of_parameters.begin(), of_parameters.end());
  device::Gpu& gpu = device_.lanes->gpu();
  gpu.make_current();
  require_gpu_memory(device_.gpu_place.text(), gpu.free_memory(), needs, shard_samples(), pool_.size());
  return std::make_shared<GpuParameters>(gpu, graph_, model.parameters, model.states);
}

void Executor::use_gpu() {
  const GpuTensors &parameters = gpu_parameters_->parameters(), &states = gpu_parameters_->states();
  const std::vector<bool> channels_last = kept_channels_last(graph_);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    LOCKSTEP_CHECK(parameters.order(i).orders_differ() == channels_last[i],
                   "a GPU keeps weights as its kernels read them");
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters_.push_back(parameters.at(i));
  for (std::size_t i = 0; i < parameters.size(); ++i) low_precision_.push_back(gpu_parameters_->copies().at(i));
  for (std::size_t i = 0; i < states.size(); ++i) states_.push_back(states.at(i));
  if (gpu_kernels_.empty()) return;
  device_.lanes->gpu().make_current();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].computes = std::make_unique<GpuWorker>(graph_, program_, std::move(gpu_kernels_[i]),
                                                       device_.lanes->at(i), GpuWorkerOptions{device_.graphs, filler_});
  }
  gpu_kernels_.clear();
}

std::vector<MemoryNeed> Executor::gpu_needs() const {
  const int workers = pool_.size();
  const std::size_t arena = ShardRunner::arena_bytes(program_), there = device_.lanes->at(0).arena.bytes();
  return {{"activations", arena > there ? arena : 0, workers}, {"inputs", GpuWorker::input_bytes(graph_), workers}};
}

std::int64_t Executor::shard_samples() const {
  return graph_.inputs.empty() ? 0 : graph_.at(graph_.inputs.front()).spec.shape.front();
}

void Executor::begin() {
  ++version_;  // an update may have changed the parameters
}

StepContext Executor::context(std::uint64_t step, int shard) const {
  return {.seed = seed_, .step = step, .first_position = shard * shard_samples(), .parameters_version = version_};
}

ShardCall Executor::call(const ShardInputs& inputs, const StepContext& step) const {
  return {.inputs = inputs,
          .parameters = parameters_,
          .low_precision = low_precision_,
          .states = states_,
          .parameters_there = gpu_parameters_ ? gpu_parameters_->changed() : device::Gpu::Event{},
          .step = step};
}

void Executor::add_up(const Worker& worker, ShardScalars& sums) const {
  const auto sum = [&](const Location& location) {
    return sum_in_order(worker.computes->result(location), worker.inputs.valid);
  };
  const Results& results = program_.results;
  sums.loss = sum(results.loss);
  sums.count = sum(results.count);
  sums.metrics.clear();
  for (const auto& [value, count] : results.metrics) sums.metrics.emplace_back(sum(value), sum(count));
}

const std::vector<ShardScalars>& Executor::train(const Plan& plan, std::uint64_t step, InputSource& source,
                                                 const GradientLayout& layout, comm::GradientReducer& reducer) {
  results_.resize(plan.shards.size());
  shard_seconds_.resize(plan.shards.size());
  loss_scale_ = plan.loss_scale;
  begin();
  pool_.run(static_cast<int>(plan.shards.size()), [&](int worker, int task) {
    const auto i = static_cast<std::size_t>(task);
    train_shard(workers_[static_cast<std::size_t>(worker)], step, plan.shards[i], source, layout, reducer, results_[i],
                shard_seconds_[i]);
  });
  collect_times();
  return results_;
}

void Executor::train_shard(Worker& worker, std::uint64_t step, int shard, InputSource& source,
                           const GradientLayout& layout, comm::GradientReducer& reducer, ShardScalars& sums,
                           double& seconds) {
  const int lane = worker_lane(static_cast<int>(&worker - workers_.data()));
  auto mark = Clock::now();
  {
    const TraceScope span(trace_, "data wait", step, lane, shard);
    source.get(step, shard, worker.inputs);
  }
  worker.times.data_seconds += seconds_since(mark);
  TraceScope span(trace_, "shard", step, lane, shard);
  const StepContext step_context = context(step, shard);
  ReducerSink sink(reducer, shard, trace_, step, lane);
  ShardCall shard_call = call(worker.inputs, step_context);
  shard_call.layout = &layout;
  shard_call.sink = &sink;
  shard_call.loss_scale = loss_scale_;
  shard_call.kernel_seconds = span.kernel_seconds();
  if (trace_ != nullptr) shard_call.ranges = trace_->ranges();
  mark = Clock::now();
  worker.computes->run(shard_call);
  seconds = seconds_since(mark);
  worker.times.compute_seconds += seconds - sink.seconds();
  worker.times.merge_seconds += sink.seconds();
  add_up(worker, sums);
  source.release(step, shard);
}

void Executor::evaluate(std::uint64_t number, const std::vector<int>& shards, InputSource& source,
                        const std::function<void(const EvaluatedShard&)>& sink) {
  begin();
  pool_.run(static_cast<int>(shards.size()), [&](int index, int task) {
    Worker& worker = workers_[static_cast<std::size_t>(index)];
    const int shard = shards[static_cast<std::size_t>(task)];
    source.get(number, shard, worker.inputs);
    const StepContext step_context = context(0, shard);
    worker.computes->run(call(worker.inputs, step_context));
    const Results& results = program_.results;
    EvaluatedShard& evaluated = worker.evaluated;
    evaluated.shard = shard;
    evaluated.valid = worker.inputs.valid;
    evaluated.loss = worker.computes->result(results.loss);
    evaluated.count = worker.computes->result(results.count);
    evaluated.prediction = worker.computes->result(results.prediction);
    evaluated.metrics.clear();
    for (const auto& [value, count] : results.metrics) {
      evaluated.metrics.emplace_back(worker.computes->result(value), worker.computes->result(count));
    }
    sink(evaluated);
    source.release(number, shard);
  });
}

void Executor::collect_times() {
  for (Worker& worker : workers_) {
    times_.compute_seconds += worker.times.compute_seconds;
    times_.data_seconds += worker.times.data_seconds;
    times_.merge_seconds += worker.times.merge_seconds;
    worker.times = {};
  }
}

}  // namespace lockstep::exec
