#include "exec/executor.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "core/round_up.hpp"
#include "core/spans.hpp"
#include "exec/compiled.hpp"
#include "exec/device.hpp"
#include "exec/parameter_gathers.hpp"
#include "graph/weight_order.hpp"
#include "lockstep/error.hpp"

namespace lockstep::exec {

namespace {

/// Of `n` values that are `step` apart.
double sum_in_order(const float* values, std::int64_t n, std::size_t step) {
  double sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) sum += static_cast<double>(values[i * step]);
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
  const Node& node = graph.nodes[static_cast<std::size_t>(graph.metrics[metric])];
  const Shape& values = graph.at(node.outputs[0]).spec.shape;
  return values.size() > 1 ? static_cast<std::size_t>(values[1]) : 1;
}

int scalars_per_micro_batch(const Graph& graph) {
  std::size_t scalars = 2;
  for (std::size_t m = 0; m < graph.metrics.size(); ++m) scalars += metric_values(graph, m) + 1;
  return static_cast<int>(scalars);
}

StepSums sums_of(comm::Scalars gathered, int columns) {
  const auto width = static_cast<std::size_t>(columns), metrics = width - 2;
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
    if (part_ != nullptr) {
      seats_[i].part_worker =
          std::make_unique<PartWorker>(device_, setup(), static_cast<int>(i), std::move(kernels_[i]));
      continue;
    }
    seats_[i].worker = device_.make_worker(setup(), static_cast<int>(i), std::move(kernels_[i]), filler_);
  }
  kernels_.clear();
}

StepContext Executor::context(std::uint64_t step, int micro_batch) const {
  return {.seed = seed_,
          .step = step,
          .first_position = micro_batch * micro_batch_samples(),
          .parameters_version = version_};
}

void Executor::begin_gathers(std::vector<GatherWave> waves, const comm::GradientBuckets* buckets) {
  if (model_->gathers == nullptr) return;
  std::vector<int> before;
  if (buckets != nullptr) before = gathers_before_buckets(program_, gathered_uses_, *buckets, waves);
  model_->gathers->begin({&gathered_uses_, std::move(waves), pool_.size(), &pool_.failed()}, std::move(before));
}

std::vector<GatherWave> Executor::waves_of_part(const PartSchedule& schedule) const {
  const auto forward_end = static_cast<std::size_t>(program_.forward_end);
  const auto of_backward = std::find_if(gathered_uses_.begin(), gathered_uses_.end(),
                                        [&](const UnitUse& use) { return use.first >= forward_end; });
  const auto forwards = static_cast<std::size_t>(of_backward - gathered_uses_.begin());
  std::vector<GatherWave> waves;
  for (const auto& [forward, readers] : schedule.waves) {
    waves.push_back(forward ? GatherWave{0, forwards, readers} : GatherWave{forwards, gathered_uses_.size(), readers});
  }
  return waves;
}

// Parameters that were fetched ahead but never read may still be under way.
void Executor::settle(std::uint64_t step) const {
  const FetchedParameters* const fetched = model_->fetched;
  if (fetched != nullptr) fetched->memory.settle({"all-gather of parameters", step, fetched->timeout});
}

// `result(location)`: a micro-batch's values at this location.
template <class Result>
void Executor::add_up(const Result& result, std::int64_t valid, MicroBatchScalars& sums) const {
  sums = {};
  if (graph_.loss < 0) return;  // another part computes the loss
  const auto sum = [&](const Location& location, std::size_t column = 0, std::size_t columns = 1) {
    return sum_in_order(result(location) + column, valid, columns);
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

const std::vector<MicroBatchScalars>& Executor::train(const TrainStep& step, InputSource& source,
                                                      const comm::GradientBuckets& buckets,
                                                      comm::GradientReducer& reducer) {
  results_.resize(step.micro_batches.size());
  micro_batch_seconds_.resize(step.micro_batches.size());
  ++version_;
  begin_gathers(part_ != nullptr ? waves_of_part(*step.of_part)
                                 : waves_of_whole(gathered_uses_.size(), step.waves,
                                                  static_cast<int>(step.micro_batches.size()), pool_.size()),
                &buckets);
  if (part_ != nullptr) {
    train_part(step, source, buckets, reducer);
  } else {
    pool_.run(static_cast<int>(step.micro_batches.size()), [&](int worker, int task) {
      const auto i = static_cast<std::size_t>(task);
      train_micro_batch(worker, wave_of(task), step, source, {reducer, buckets, step.micro_batches[i], step.loss_scale},
                        results_[i], micro_batch_seconds_[i]);
    });
  }
  settle(step.number);
  for (Seat& seat : seats_) {
    const MicroBatchTimes times = std::exchange(seat.times, {});
    times_.part_waits.activations += times.part_waits.activations;
    times_.part_waits.gradients += times.part_waits.gradients;
    times_.part_waits.sends += times.part_waits.sends;
    times_.part_bytes += times.part_bytes;
    times_.compute_seconds += times.compute_seconds;
    times_.data_seconds += times.data_seconds;
    times_.merge_seconds += times.merge_seconds;
  }
  return results_;
}

void Executor::train_micro_batch(int worker, int wave, const TrainStep& step, InputSource& source,
                                 GradientTarget target, MicroBatchScalars& sums, double& seconds) {
  Seat& seat = seats_[static_cast<std::size_t>(worker)];
  const int track = worker_track(worker);
  auto mark = Clock::now();
  {
    const TraceScope span(trace_, "data wait", step.number, track, target.micro_batch);
    source.get(step.number, target.micro_batch, seat.inputs);
  }
  seat.times.data_seconds += seconds_since(mark);
  TraceScope span(trace_, "micro_batch", step.number, track, target.micro_batch);
  mark = Clock::now();
  const double handing_over = seat.worker->run({.inputs = seat.inputs,
                                                .model = *model_,
                                                .context = context(step.number, target.micro_batch),
                                                .gradients = &target,
                                                .trace = trace_,
                                                .track = track,
                                                .wave = wave,
                                                .kernel_seconds = span.kernel_seconds()});
  seconds = seconds_since(mark);
  seat.times.compute_seconds += seconds - handing_over;
  seat.times.merge_seconds += handing_over;
  add_up([&](const Location& location) { return seat.worker->result(location); }, seat.inputs.valid, sums);
  source.release(step.number, target.micro_batch);
}

PartCalls Executor::part_calls(std::uint64_t step, const PartSchedule& schedule, InputSource& source) const {
  return {.step = step,
          .rank_of_micro_batch = schedule.rank_of_micro_batch,
          .numbers = schedule.numbers,
          .model = *model_,
          .context = [this, step](int micro_batch) { return context(step, micro_batch); },
          .source = source,
          .stop = &pool_.failed()};
}

// Each worker has its own micro-batches, and computes both forward and backward of each.
void Executor::train_part(const TrainStep& step, InputSource& source, const comm::GradientBuckets& buckets,
                          comm::GradientReducer& reducer) {
  const auto index_of = [&](int micro_batch) {
    return static_cast<std::size_t>(std::find(step.micro_batches.begin(), step.micro_batches.end(), micro_batch) -
                                    step.micro_batches.begin());
  };
  pool_.run(pool_.size(), [&](int /*thread*/, int worker) {
    Seat& seat = seats_[static_cast<std::size_t>(worker)];
    PartCalls calls = part_calls(step.number, *step.of_part, source);
    calls.buckets = &buckets;
    calls.sink = &reducer;
    calls.loss_scale = step.loss_scale;
    calls.trace = trace_;
    calls.track = worker_track(worker);
    PartWorker& part = *seat.part_worker;
    part.run(calls, step.of_part->tasks[static_cast<std::size_t>(worker)], [&](int micro_batch, double seconds) {
      const std::size_t i = index_of(micro_batch);
      add_up([&](const Location& location) { return part.result(location); }, part.valid(), results_[i]);
      micro_batch_seconds_[i] = seconds;
    });
    const PartWork taken = part.take_work();
    seat.times = {.compute_seconds = taken.compute,
                  .data_seconds = taken.inputs,
                  .merge_seconds = taken.hand_over,
                  .part_waits = taken.waits,
                  .part_bytes = taken.bytes_sent};
  });
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
  std::vector<ScratchGradients*> of_workers(static_cast<std::size_t>(pool_.size()));
  std::atomic<std::size_t> given{0};
  std::vector<double> seconds(static_cast<std::size_t>(count));
  // Other ranks do not take part.
  const auto model = model_->gathers == nullptr ? model_ : model_->gathers->trial(*model_);
  pool_.run(count, [&](int worker, int task) {
    ScratchGradients*& own = of_workers[static_cast<std::size_t>(worker)];
    if (own == nullptr) own = &scratch[given++];
    const GradientTarget target{*own, buckets};
    const StepContext first = context(0, 0);
    const MicroBatchCall call{.inputs = inputs, .model = *model, .context = first, .gradients = &target};
    Seat& seat = seats_[static_cast<std::size_t>(worker)];
    const auto start = Clock::now();
    seat.part_worker ? (void)seat.part_worker->try_micro_batch(call) : (void)seat.worker->run(call);
    seconds[static_cast<std::size_t>(task)] = seconds_since(start);
  });
  settle(0);
  return seconds;
}

void Executor::evaluate(std::uint64_t number, const std::vector<int>& micro_batches, InputSource& source,
                        const std::function<void(const EvaluatedMicroBatch&)>& sink, int waves,
                        const std::atomic<bool>* stop) {
  ++version_;
  begin_gathers(waves_of_whole(gathered_uses_.size(), waves, static_cast<int>(micro_batches.size()), pool_.size()),
                nullptr);
  pool_.run(static_cast<int>(micro_batches.size()), [&](int worker, int task) {
    if (stop != nullptr && *stop && model_->gathers == nullptr) return;  // all ranks take part in gathers
    Seat& seat = seats_[static_cast<std::size_t>(worker)];
    const int micro_batch = micro_batches[static_cast<std::size_t>(task)];
    source.get(number, micro_batch, seat.inputs);
    seat.worker->run(
        {.inputs = seat.inputs, .model = *model_, .context = context(0, micro_batch), .wave = wave_of(task)});
    show([&](const Location& location) { return seat.worker->result(location); }, micro_batch, seat.inputs.valid,
         seat.evaluated);
    sink(seat.evaluated);
    source.release(number, micro_batch);
  });
  if (model_->gathers != nullptr) model_->gathers->end();
  settle(number);
}

template <class Result>
void Executor::show(const Result& result, int micro_batch, std::int64_t valid, EvaluatedMicroBatch& evaluated) const {
  const Results& results = program_.results;
  evaluated.micro_batch = micro_batch;
  evaluated.valid = valid;
  evaluated.loss = result(results.loss);
  evaluated.count = result(results.count);
  evaluated.prediction = result(results.prediction);
  evaluated.metrics.clear();
  for (const auto& [value, count] : results.metrics) evaluated.metrics.emplace_back(result(value), result(count));
}

void Executor::evaluate(std::uint64_t number, const PartSchedule& schedule, InputSource& source,
                        const std::function<void(const EvaluatedMicroBatch&)>& sink, const std::atomic<bool>* stop) {
  ++version_;
  begin_gathers(waves_of_part(schedule), nullptr);
  pool_.run(pool_.size(), [&](int /*thread*/, int worker) {
    Seat& seat = seats_[static_cast<std::size_t>(worker)];
    PartWorker& part = *seat.part_worker;
    PartCalls calls = part_calls(number, schedule, source);
    calls.context = [this](int micro_batch) { return context(0, micro_batch); };
    calls.skips_compute = stop;
    part.run(calls, schedule.tasks[static_cast<std::size_t>(worker)], [&](int micro_batch, double /*seconds*/) {
      show([&](const Location& location) { return part.result(location); }, micro_batch, part.valid(), seat.evaluated);
      sink(seat.evaluated);
    });
    (void)part.take_work();
  });
  if (model_->gathers != nullptr) model_->gathers->end();
  settle(number);
}

}  // namespace lockstep::exec
