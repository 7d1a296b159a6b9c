#include "step/exec/executor.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "core/round_up.hpp"
#include "core/spans.hpp"
#include "graph/weight_order.hpp"
#include "lockstep/error.hpp"
#include "step/exec/compiled.hpp"
#include "step/exec/device.hpp"
#include "step/exec/parameter_gathers.hpp"

namespace lockstep::exec {

namespace {

/// Of `n` values that are `step` apart.
double sum_in_order(const float* values, std::int64_t n, std::size_t step) {
  double sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) sum += values[i * step];
  return sum;
}

/// Gives one worker memory for its gradients and discards them: no more than for the buckets that it has open at a
/// time. Even if two of these overlapped, nobody would read them.
class ScratchGradients final : public comm::GradientSink {
 public:
  ScratchGradients(const Device& device, const comm::GradientBuckets& buckets, std::int64_t elements)
      : buckets_(buckets), elements_(elements), scratch_(device.make_scratch(elements)) {}
  comm::GradientBuffer buffer(int /*micro-batch*/, int bucket) override {
    const std::int64_t size = whole_lines(buckets_.at(bucket).elements);
    if (next_ + size > elements_) next_ = 0;
    comm::GradientBuffer place = scratch_.buffer;
    place.memory += std::exchange(next_, next_ + size);
    return place;
  }
  void ready(int /*micro-batch*/, int /*bucket*/) override {}

 private:
  const comm::GradientBuckets& buckets_;
  std::int64_t elements_, next_ = 0;
  ScratchBuffer scratch_;
};

}  // namespace

std::vector<double> scalars_of(const std::vector<MicroBatchScalars>& micro_batches) {
  std::vector<double> scalars;
  for (const MicroBatchScalars& micro_batch : micro_batches) {
    scalars.insert(scalars.end(), {micro_batch.loss, micro_batch.count});
    scalars.insert(scalars.end(), micro_batch.metrics.begin(), micro_batch.metrics.end());
  }
  return scalars;
}

std::size_t metric_values(const Graph& graph, std::size_t metric) {
  const Node& node = graph.nodes[graph.metrics[metric]];
  const Shape& values = graph.at(node.outputs[0]).spec.shape;
  return values.size() > 1 ? static_cast<std::size_t>(values[1]) : 1;
}

int scalars_per_micro_batch(const Graph& graph) {
  std::size_t scalars = 2;
  for (std::size_t m = 0; m < graph.metrics.size(); ++m) scalars += metric_values(graph, m) + 1;
  return scalars;
}

StepSums sums_of(comm::Scalars gathered, int columns) {
  const std::size_t width = columns, metrics = width - 2;
  StepSums sums;
  sums.metrics.resize(metrics);
  for (std::size_t row = 0; row + width <= gathered.values.size(); row += width) {
    sums.loss += gathered.values[row];
    sums.count += gathered.values[row + 1];
    for (std::size_t m = 0; m < metrics; ++m) sums.metrics[m] += gathered.values[row + 2 + m];
  }
  sums.flags = gathered.flags;
  sums.rank_values = std::move(gathered.rank_values);
  return sums;
}

Executor::Executor(const Graph& graph, Mode mode, const Device& device, WorkerPool& pool, std::uint64_t seed,
                   const ExecutorOptions& options)
    : graph_(device.lower(graph, options.lowered)), device_(device), pool_(pool), seed_(seed) {
  compile_with(options, mode);
}

Executor::Executor(const PartOfModel& part, Mode mode, const Device& device, WorkerPool& pool, std::uint64_t seed,
                   const ExecutorOptions& options)
    : part_(&part), graph_(part.part.graph), device_(device), pool_(pool), seed_(seed) {
  compile_with(options, mode);
}

void Executor::compile_with(const ExecutorOptions& options, Mode mode) {
  for (int worker = 0; worker < pool_.size(); ++worker) {
    kernels_.emplace_back(graph_, mode, device_, worker, options.algorithms, options.keeps_weights);
  }
  const KernelSet& first = kernels_.front();
  program_ = program_of(graph_, mode, needs_of(first),
                        {.in_place = options.lowered,
                         .recompute = options.recompute,
                         .boundary = part_ == nullptr ? nullptr : &part_->part.boundary});
  algorithms_ = first.algorithms();
  for (const KernelSet& set : kernels_) {
    LOCKSTEP_CHECK(set.algorithms() == algorithms_, "a library proposes one algorithm for the same sizes on one GPU");
  }
}

void Executor::use(const ModelValues& model) {
  model_ = model.placed ? model.placed : device_.place_model(setup(), model.parameters, model.states);
  LOCKSTEP_CHECK(model_->channels_last == kept_channels_last(graph_),
                 "a device keeps weights as its kernels read them");
  if (seats_.empty()) make_workers();
  if (model_->gathers != nullptr) gathered_uses_ = model_->gathers->prepare(program_, pool_.size());
}

// Called with the first model, not earlier: the memory that a GPU's program needs is counted first.
void Executor::make_workers() {
  seats_.resize(kernels_.size());
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    seats_[i].worker = std::make_unique<Worker>(device_, setup(), static_cast<int>(i), std::move(kernels_[i]), filler_);
  }
  kernels_.clear();
}

// If ranks divide parameters on GPUs: begins the gathers of a step, or of an evaluation, which has no buckets.
void Executor::begin_gathers(const Step& step, const comm::GradientBuckets* buckets) {
  ++version_;
  if (model_->gathers == nullptr) return;
  std::vector<GatherWave> waves =
      part_ != nullptr ? waves_of_part(*step.of_part)
                       : waves_of_whole(gathered_uses_.size(), step.waves, step.micro_batches.size(), pool_.size());
  std::vector<int> before;
  if (buckets != nullptr) {
    before = gathers_before_exchanges(program_, gathered_uses_, *buckets, waves, model_->gathers->slots());
  }
  model_->gathers->begin({&gathered_uses_, std::move(waves), pool_.size(), &pool_.failed()}, std::move(before));
}

std::vector<GatherWave> Executor::waves_of_part(const PartSchedule& schedule) const {
  const std::size_t forward_end = program_.forward_end;
  const auto of_backward = std::find_if(gathered_uses_.begin(), gathered_uses_.end(),
                                        [&](const UnitUse& use) { return use.first >= forward_end; });
  const std::size_t forwards = of_backward - gathered_uses_.begin();
  std::vector<GatherWave> waves;
  for (const auto& [forward, readers] : schedule.waves) {
    waves.push_back(forward ? GatherWave{0, forwards, readers, false}
                            : GatherWave{forwards, gathered_uses_.size(), readers, true});
  }
  return waves;
}

// Parameters that were fetched ahead but never read may still be under way.
void Executor::settle(std::uint64_t step) const {
  const FetchedParameters* const fetched = model_->fetched;
  if (fetched != nullptr) fetched->memory.settle({"all-gather of parameters", step, fetched->timeout});
}

void Executor::add_up(const Worker& worker, MicroBatchScalars& sums) const {
  sums = {};
  if (graph_.loss < 0) return;  // another part computes the loss
  const auto sum = [&](const Location& location, std::size_t column = 0, std::size_t columns = 1) {
    return sum_in_order(worker.result(location) + column, worker.valid(), columns);
  };
  const Results& results = program_.results;
  sums.loss = sum(results.loss);
  sums.count = sum(results.count);
  for (std::size_t m = 0; m < results.metrics.size(); ++m) {
    const std::size_t columns = metric_values(graph_, m);
    for (std::size_t c = 0; c < columns; ++c) sums.metrics.push_back(sum(results.metrics[m].first, c, columns));
    sums.metrics.push_back(sum(results.metrics[m].second));
  }
}

// Of a whole model, workers take one micro-batch after the other; of a part, each has its own, in an order that the
// ranks have agreed on.
template <class Done>
void Executor::run_tasks(const Step& step, StepCalls calls, const Done& done) {
  calls.step = step.number;
  calls.context.seed = seed_;
  calls.context.parameters_version = version_;
  calls.stop = &pool_.failed();
  if (part_ != nullptr) {
    calls.rank_of_micro_batch = &step.of_part->rank_of_micro_batch;
    calls.numbers = &step.of_part->numbers;
  }
  const std::size_t lists = part_ != nullptr ? seats_.size() : step.micro_batches.size();
  pool_.run(static_cast<int>(lists), [&](int thread, int list) {
    const std::size_t number = list;
    Seat& seat = seats_[part_ != nullptr ? number : static_cast<std::size_t>(thread)];
    StepCalls own = calls;
    own.track = worker_track(part_ != nullptr ? list : thread);
    const auto with_seat = [&](int micro_batch, double seconds) { done(seat, micro_batch, seconds); };
    const Worker::Done call_back = std::ref(with_seat);  // small enough for a step to allocate nothing
    if (part_ != nullptr) return seat.worker->run(own, step.of_part->tasks[number], call_back);
    if (calls.skips_compute != nullptr && *calls.skips_compute && model_->gathers == nullptr) return;
    const int all = step.micro_batches.size();
    const int wave = model_->gathers == nullptr ? 0 : comm::wave_at(list, all, pool_.size(), step.waves);
    const Task task{step.micro_batches[number], Pass::whole, wave};
    seat.worker->run(own, {&task, 1}, call_back);
  });
}

const std::vector<MicroBatchScalars>& Executor::train(const Step& step, InputSource& source,
                                                      const comm::GradientBuckets& buckets,
                                                      comm::GradientReducer& reducer) {
  results_.resize(step.micro_batches.size());
  micro_batch_seconds_.resize(step.micro_batches.size());
  begin_gathers(step, &buckets);
  const StepCalls calls{.model = *model_,
                        .context = {.step = step.number},
                        .source = source,
                        .buckets = &buckets,
                        .sink = &reducer,
                        .loss_scale = step.loss_scale,
                        .trace = trace_};
  run_tasks(step, calls, [&](Seat& seat, int micro_batch, double seconds) {
    const auto& all = step.micro_batches;
    const std::size_t i = std::find(all.begin(), all.end(), micro_batch) - all.begin();
    add_up(*seat.worker, results_[i]);
    micro_batch_seconds_[i] = seconds;
  });
  settle(step.number);
  for (Seat& seat : seats_) times_ += seat.worker->take_times();
  return results_;
}

std::vector<double> Executor::try_micro_batches(int count, const comm::GradientBuckets& buckets) {
  ++version_;
  std::vector<AlignedBytes> zeros;
  MicroBatchInputs inputs;
  inputs.valid = micro_batch_samples();
  for (const std::size_t bytes : tensor_bytes(graph_, filler_.get())) {
    const AlignedBytes& tensor = zeros.emplace_back(std::max<std::size_t>(bytes, 1));
    std::fill_n(tensor.data(), tensor.size(), std::byte{0});
    inputs.tensors.push_back(tensor.data());
  }
  // Made before the clocks start, for as many workers as can get a micro-batch.
  std::deque<ScratchGradients> scratch;
  for (int i = 0; i < std::min(count, pool_.size()); ++i)
    scratch.emplace_back(device_, buckets, scratch_elements(program_, buckets));
  std::vector<ScratchGradients*> of_workers(pool_.size());
  std::atomic<std::size_t> given{0};
  std::vector<double> seconds(count);
  // Other ranks do not take part.
  const auto model = model_->gathers == nullptr ? model_ : model_->gathers->trial(*model_);
  pool_.run(count, [&](int worker, int task) {
    ScratchGradients*& own = of_workers[worker];
    if (own == nullptr) own = &scratch[given++];
    const GradientTarget target{*own, buckets};
    const StepContext first{.seed = seed_, .parameters_version = version_};
    const MicroBatchCall call{.inputs = inputs, .model = *model, .context = first, .gradients = &target};
    seconds[task] = seats_[worker].worker->try_micro_batch(call);
  });
  settle(0);
  return seconds;
}

void Executor::evaluate(const Step& step, InputSource& source,
                        const std::function<void(const EvaluatedMicroBatch&)>& sink, const std::atomic<bool>* stop) {
  begin_gathers(step, nullptr);
  const StepCalls calls{.model = *model_, .context = {}, .source = source, .skips_compute = stop};
  run_tasks(step, calls, [&](Seat& seat, int micro_batch, double /*seconds*/) {
    if (stop != nullptr && *stop) return;
    const Worker& worker = *seat.worker;
    const Results& results = program_.results;
    EvaluatedMicroBatch& evaluated = seat.evaluated;
    evaluated.micro_batch = micro_batch;
    evaluated.valid = worker.valid();
    evaluated.loss = worker.result(results.loss);
    evaluated.count = worker.result(results.count);
    evaluated.prediction = worker.result(results.prediction);
    evaluated.metrics.clear();
    for (const auto& [value, count] : results.metrics) {
      evaluated.metrics.emplace_back(worker.result(value), worker.result(count));
    }
    sink(evaluated);
  });
  for (Seat& seat : seats_) (void)seat.worker->take_times();
  if (model_->gathers != nullptr) model_->gathers->end();
  settle(step.number);
}

}  // namespace lockstep::exec
