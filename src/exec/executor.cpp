#include "exec/executor.hpp"

#include "core/spans.hpp"
#include "graph/lowering/lower.hpp"

namespace lockstep::exec {

namespace {

std::int64_t batch_of(const Graph& graph) {
  return graph.inputs.empty() ? 0 : graph.at(graph.inputs.front()).spec.shape.front();
}

double sum_in_order(const float* values, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(values[i]);
  return sum;
}

}  // namespace

Executor::Executor(const Graph& graph, Mode mode, DeviceKind device, WorkerPool& pool, std::uint64_t seed, bool lowered)
    : graph_(lowered ? lower(graph, device) : graph), pool_(pool), seed_(seed) {
  std::vector<KernelSet> sets;
  for (int i = 0; i < pool.size(); ++i) sets.emplace_back(graph_, mode, device);
  program_ = compile(graph_, mode, [&](std::int32_t node) { return sets.front().workspace_bytes(node); });
  for (auto& set : sets) {
    Worker worker;
    worker.runner = std::make_unique<ShardRunner>(program_, std::move(set));
    worker.slots.resize(program_.slots.size());
    workers_.push_back(std::move(worker));
  }
}

void Executor::use(const TensorBlock& parameters, const TensorBlock& states) {
  parameters_.clear();
  states_.clear();
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters_.push_back(parameters.at(i).data());
  for (std::size_t i = 0; i < states.size(); ++i) states_.push_back(states.at(i).data());
  ++version_;
}

StepContext Executor::context(std::uint64_t step, int shard) const {
  return {.seed = seed_, .step = step, .first_position = shard * batch_of(graph_), .parameters_version = version_};
}

ShardBinding Executor::binding(const Worker& worker, const StepContext& step) const {
  return {.inputs = worker.inputs.tensors,
          .parameters = parameters_,
          .states = states_,
          .slots = worker.slots,
          .step = &step};
}

void Executor::add_up(const Worker& worker, ShardScalars& sums) const {
  const auto sum = [&](const Location& location) {
    return sum_in_order(worker.runner->result(location), worker.inputs.valid);
  };
  const Results& results = program_.results;
  sums.loss = sum(results.loss);
  sums.count = sum(results.count);
  sums.metrics.clear();
  for (const auto& [value, count] : results.metrics) sums.metrics.emplace_back(sum(value), sum(count));
}

const std::vector<ShardScalars>& Executor::train(const Plan& plan, std::uint64_t step, InputSource& source,
                                                 const GradientLayout& layout, comm::Exchange& exchange) {
  results_.resize(plan.shards.size());
  shard_seconds_.resize(plan.shards.size());
  ++version_;  // the update has changed the parameters since the last step
  pool_.run(static_cast<int>(plan.shards.size()), [&](int worker, int task) {
    const auto i = static_cast<std::size_t>(task);
    train_shard(workers_[static_cast<std::size_t>(worker)], step, plan.shards[i], source, layout, exchange, results_[i],
                shard_seconds_[i]);
  });
  collect_times();
  return results_;
}

void Executor::train_shard(Worker& worker, std::uint64_t step, int shard, InputSource& source,
                           const GradientLayout& layout, comm::Exchange& exchange, ShardScalars& sums,
                           double& seconds) {
  const int lane = worker_lane(static_cast<int>(&worker - workers_.data()));
  auto mark = Clock::now();
  {
    const TraceScope span(trace_, "data wait", step, lane, shard);
    source.get(step, shard, worker.inputs);
  }
  worker.times.data_seconds += seconds_since(mark);
  TraceScope span(trace_, "shard", step, lane, shard);
  worker.runner->time_kernels(span.kernel_seconds());
  const StepContext step_context = context(step, shard);
  const ShardBinding shard_binding = binding(worker, step_context);

  // Buckets are opened when their first slot is about to be written and handed over when their last one is.
  std::size_t opened = 0, closed = 0;
  mark = Clock::now();
  double handing_over = 0;
  worker.runner->run(
      shard_binding,
      [&](std::size_t i) {
        const auto slots_after = program_.instructions[i].slots_done;
        for (; opened < layout.buckets.size() && layout.buckets[opened].first_slot < slots_after; ++opened) {
          const comm::Leaf leaf = exchange.leaf(shard, static_cast<int>(opened));
          const Bucket& bucket = layout.buckets[opened];
          for (auto s = bucket.first_slot; s < bucket.last_slot; ++s) {
            const auto slot = static_cast<std::size_t>(s);
            worker.slots[slot] = {leaf.memory + layout.slots[slot].offset, leaf.add};
          }
        }
      },
      [&](std::size_t i) {
        const auto slots_done = program_.instructions[i].slots_done;
        for (; closed < layout.buckets.size() && layout.buckets[closed].last_slot <= slots_done; ++closed) {
          const TraceScope handing(trace_, "hand over", step, lane, static_cast<int>(closed));
          const auto start = Clock::now();
          exchange.ready(shard, static_cast<int>(closed));
          handing_over += seconds_since(start);
        }
      });
  seconds = seconds_since(mark);
  worker.runner->time_kernels(nullptr);
  worker.times.compute_seconds += seconds - handing_over;
  worker.times.merge_seconds += handing_over;
  add_up(worker, sums);
  source.release(step, shard);
}

void Executor::evaluate(const std::vector<int>& shards, InputSource& source,
                        const std::function<void(const EvaluatedShard&)>& sink) {
  ++version_;
  pool_.run(static_cast<int>(shards.size()), [&](int index, int task) {
    Worker& worker = workers_[static_cast<std::size_t>(index)];
    const int shard = shards[static_cast<std::size_t>(task)];
    source.get(0, shard, worker.inputs);
    const StepContext step_context = context(0, shard);
    worker.runner->run(
        binding(worker, step_context), [](std::size_t) {}, [](std::size_t) {});
    const Results& results = program_.results;
    EvaluatedShard& evaluated = worker.evaluated;
    evaluated.shard = shard;
    evaluated.valid = worker.inputs.valid;
    evaluated.loss = worker.runner->result(results.loss);
    evaluated.count = worker.runner->result(results.count);
    evaluated.prediction = worker.runner->result(results.prediction);
    evaluated.metrics.clear();
    for (const auto& [value, count] : results.metrics) {
      evaluated.metrics.emplace_back(worker.runner->result(value), worker.runner->result(count));
    }
    sink(evaluated);
    source.release(0, shard);
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
