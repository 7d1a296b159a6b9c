#include "train/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "checkpoint/initialize.hpp"
#include "comm/reduce/reduce_plan.hpp"
#include "comm/transport/host_leader.hpp"
#include "comm/transport/recorded.hpp"
#include "comm/transport/work_together.hpp"
#include "config/config.hpp"
#include "exec/thread_counts.hpp"
#include "graph/model_graph.hpp"
#include "graph/workload.hpp"
#include "lockstep/error.hpp"
#include "optim/loss_scaling.hpp"
#include "train/agreed_algorithms.hpp"
#include "train/catalogue.hpp"
#include "train/device_choice.hpp"
#include "train/first_shard.hpp"
#include "train/job_graph.hpp"
#include "train/known_speeds.hpp"
#include "train/start_check.hpp"
#include "train/step_flags.hpp"

namespace lockstep::train {

namespace {

std::int64_t total_steps(const JobFile& job, std::int64_t steps_per_epoch) {
  if (job.steps > 0) return job.steps;
  const std::int64_t steps = std::llround(job.epochs * static_cast<double>(steps_per_epoch));
  if (steps > 0) return steps;
  throw config::Problems({{job.place_of("job.epochs"),
                           fmt::format("expected epochs that are at least one step, found {} epochs of {} steps, which "
                                       "round to 0 steps; set epochs to {:.2g} or more, or steps=1",
                                       job.epochs, steps_per_epoch, 1.0 / static_cast<double>(steps_per_epoch))}});
}

}  // namespace

Training::Training(const JobFile& job, Communicator& communicator, const Registries& registries,
                   const TrainerOptions& options, const DataSets& own)
    : job_(job),
      canonical_(config::canonical(job, catalogue_of(registries))),
      communicator_(communicator),
      registries_(registries),
      options_(options),
      sinks_(options.sink == nullptr ? 0 : 1, options.sink),
      backend_(choose_backend(job, communicator)),
      context_{{job_, canonical_, communicator_, backend_->device(), sinks_}, registries_, options_},
      start_(Clock::now()),
      data_(input::prepare_data(job.data, job.seed, job.batch_size, registries.augmentations, own,
                                {.communicator = &communicator})),
      content_check_(context_, data_.sources),
      bad_samples_(context_, data_.replaced),
      graph_(make_job_graph(job, data_, registries)),
      targets_in_mean_(optim::targets_in_mean(graph_, job.shards)),
      steps_per_epoch_(data_.train->size() / job.batch_size),
      steps_(total_steps(job, steps_per_epoch_)),
      balancing_(context_),
      learning_rate_(job.learning_rate, registries.schedules, job.batch_size, steps_, steps_per_epoch_),
      signals_(options.handle_signals) {
  observers_ = std::make_unique<observe::Observers>(context_, options_.profile);
  pool_ = std::make_unique<exec::WorkerPool>(balancing_.workers());
  make_executor();
  progress_ = begin_progress(context_, data_, executor_->algorithms());
  first_shard_seconds_ =
      compare_first_shard(context_, data_, graph_, how_to_execute(executor_->algorithms()), progress_);
  layout_ = exec::make_gradient_layout(executor_->program(), job.bucket_bytes);
  bucket_layout_ = exec::bucket_layout(layout_, job.shards);
  bucket_layout_.spread_owners = context_.device.spreads_owners();
  make_step();
  model_ = updater_->make_model(job.seed);
  checkpointing_ = std::make_unique<Checkpointing>(context_);
  resumed_ = checkpointing_->resume(updater_->optimizer_state_names(), model_, progress_);
  if (!resumed_ && job.initialize) {
    const auto read = [&](comm::WorkProgress& /*progress*/) {
      checkpoint::initialize_from_file(*job.initialize, job.place_of("job.initialize.only"), model_);
      return false;
    };
    (void)comm::work_together(communicator, {"initialize", 0, context_.timeout()}, read, comm::kStartDeadline);
  }
  first_step_ = progress_.step;
  checkpointing_->prepare(model_, updater_->optimizer_state_names(), keep_every());
  validation_ = std::make_unique<Validation>(context_, data_, graph_, *pool_, options_.lowered);
  put_model();
  const bool recorded = resumed_ && context_.leads();
  balancing_.start(*executor_, layout_, workload_of(graph_),
                   recorded ? read_balance_record(job.run_directory) : balance::Record{}, progress_.step);
  make_loader();
  start_observers();
}

exec::ExecutorOptions Training::how_to_execute(const std::vector<std::string>& algorithms) const {
  return {.lowered = options_.lowered, .recompute = job_.recompute, .algorithms = algorithms};
}

void Training::make_executor() {
  const auto make = [&](const std::vector<std::string>& algorithms) {
    return std::make_unique<exec::Executor>(graph_, Mode::training, context_.device, *pool_, job_.seed,
                                            how_to_execute(algorithms));
  };
  executor_ =
      computes_alike(job_, context_.device) ? make_with_algorithms_of_first_rank(communicator_, make) : make({});
}

void Training::make_step() {
  const optim::UpdaterSetup setup{executor_->graph(),
                                  executor_->program(),
                                  layout_,
                                  registries_.optimizers,
                                  job_.optimizer,
                                  job_.clip_norm,
                                  static_cast<int>(job_.shards),
                                  job_.precision == Precision::fp16};
  const comm::ReducerOptions options{.exact = job_.exact != Exactness::never,
                                     .timeout = context_.timeout(),
                                     .scalars_per_shard = exec::scalars_per_shard(graph_.metrics.size())};
  auto step = backend_->make_step(context_, setup, bucket_layout_, options, *pool_);
  reducer_ = std::move(step.reducer);
  updater_ = std::move(step.updater);
}

void Training::put_model() {
  placed_data_ = backend_->place_data(context_, data_, graph_,
                                      {.executor = *executor_,
                                       .updater = *updater_,
                                       .model = model_,
                                       .layout = bucket_layout_,
                                       .shards = static_cast<int>(balancing_.own_shards().size()),
                                       .evaluates = validation_->wanted()});
  balancing_.limit(placed_data_.max_shards);
  executor_->fill_inputs(placed_data_.train);
  validation_->fill_inputs(placed_data_.validation);
  updater_->begin(model_);
  executor_->use(updater_->values(model_));
}

void Training::start_observers() {
  const auto& every = job_.checkpoint.every;
  observers_->start({.graph = graph_,
                     .restarts = options_.restarts,
                     .exactness = progress_.exactness,
                     .first_step = first_step_,
                     .steps = steps_,
                     .steps_per_epoch = steps_per_epoch_,
                     .checkpoint_every = job_.checkpoint.never ? 0 : every.steps(steps_per_epoch_),
                     .workers = pool_->size()},
                    *loader_, data_, graph_);
}

void Training::make_loader() {
  data::LoaderOptions options;
  options.batch = job_.batch_size;
  options.shards = static_cast<int>(job_.shards);
  options.seed = job_.seed;
  options.first_step = static_cast<std::uint64_t>(progress_.step);
  options.last_step = static_cast<std::uint64_t>(std::max(steps_, progress_.step));
  options.cache_bytes = job_.data.cache == SampleCache::memory ? job_.data.cache_bytes : 0;
  options.threads = job_.data.threads;
  options.depth = job_.data.depth;
  options.max_threads = exec::most_loader_threads(communicator_);
  options.drawn = placed_data_.train != nullptr;
  options.inputs = input_names(graph_);
  options.recorder = comm::recorder_of(communicator_);
  loader_ = std::make_unique<data::Loader>(*data_.train, data_.pipeline(*data_.train, true), options);
  use_shares(options.first_step);
}

void Training::use_shares(std::uint64_t from_step) {
  loader_->assign(from_step, balancing_.own_shards());
  const comm::Hosts hosts(communicator_.topology());
  const comm::PlannedBytes bytes =
      comm::bytes_of(comm::reduce_plan(balancing_.assignment(), hosts, bucket_layout_, communicator_.rank()), hosts);
  bytes_of_step_ = static_cast<double>(bytes.inside_host + bytes.between_hosts);
}

TrainResult Training::run() {
  emit_start();
  if (resumed_ && !is_done()) {
    context_.emit(events::Restart{.step = progress_.step, .path = checkpointing_->path(progress_.step)});
  }
  observers_->start_tracing(progress_.step, executor_->program().instructions.size());
  trace_next_step();
  loop_start_ = Clock::now();
  while (!is_done() && !interrupted_) step();
  training_seconds_ = seconds_since(loop_start_);
  observers_->finish_tracing();
  trace_next_step();
  bool best = false;
  if (!interrupted_ && validation_->wanted() && progress_.metrics.empty()) best = evaluate();
  if (best || !checkpointing_->has_begun(progress_.step)) write_checkpoint(best);
  finish_checkpoints();
  bad_samples_.report(progress_.step);  // of the last evaluation
  updater_->fetch(model_);
  TrainResult result = make_result();
  emit_end(result);
  observers_->ended();
  return result;
}

TrainResult Training::make_result() const {
  TrainResult result;
  result.steps = progress_.step;
  result.samples = (progress_.step - first_step_) * job_.batch_size;
  result.seconds = training_seconds_;
  result.samples_per_second = training_seconds_ > 0 ? static_cast<double>(result.samples) / training_seconds_ : 0;
  result.loss = last_.loss;
  result.metrics = progress_.metrics;
  result.parameters_sha256 = exec::sha256_of(model_.parameters);
  result.interrupted = interrupted_;
  return result;
}

void Training::step() {
  observe::StepScope step = observers_->step(progress_.step);
  const exec::TrainStep work = feed();
  const std::vector<exec::ShardScalars>& losses = compute(step, work);
  const exec::StepSums sums = reduce(step, losses);
  update(step, sums);
  observe(step, sums);
}

// What this rank computes in this step. Its inputs are on their way since the steps before.
exec::TrainStep Training::feed() {
  last_.loss_scale = progress_.loss_scale.scale;
  last_.gradient_scale = last_.loss_scale > 0 ? last_.loss_scale / targets_in_mean_ : 1;
  reducer_->begin_step(static_cast<std::uint64_t>(progress_.step), balancing_.assignment());
  bytes_by_formula_ += bytes_of_step_;
  return {static_cast<std::uint64_t>(progress_.step), balancing_.own_shards(),
          static_cast<float>(last_.gradient_scale)};
}

// Forward and backward of this rank's shards. Finished buckets of gradients leave meanwhile.
const std::vector<exec::ShardScalars>& Training::compute(observe::StepScope& step, const exec::TrainStep& work) {
  const auto phase = step.enter(observe::StepPhase::compute);
  const auto& losses = executor_->train(work, *loader_, layout_, *reducer_);
  balancing_.computed(*executor_, layout_);
  return losses;
}

// Waits until every bucket is summed over all shards, and gathers what else all ranks need to know.
exec::StepSums Training::reduce(observe::StepScope& step, const std::vector<exec::ShardScalars>& losses) {
  const auto phase = step.enter(observe::StepPhase::reduce);
  reducer_->finish();
  const balance::MeasureValues mine = balancing_.measured({.exchange = phase.seconds(),
                                                           .last_update = last_.update_seconds,
                                                           .gpu = observers_->gpu_cause(),
                                                           .joules = observers_->energy()});
  const std::uint32_t flags = stop_requests() | balancing_.flags() | bad_samples_.flags();
  exec::StepSums sums = exec::gather_scalars(*reducer_, losses, graph_.metrics.size(), flags, mine);
  last_.loss = checked_loss(sums);
  return sums;
}

void Training::update(observe::StepScope& step, const exec::StepSums& sums) {
  {
    const auto phase = step.enter(observe::StepPhase::update);
    optim::LossScale& scale = progress_.loss_scale;
    last_.learning_rate = learning_rate_.at(progress_.step) * progress_.learning_rate_factor;
    last_.updated = updater_->update(model_, sums.count,
                                     {.learning_rate = last_.learning_rate,
                                      .step = progress_.step,
                                      .update = progress_.step - scale.skipped,
                                      .loss_scale = last_.gradient_scale});
    if (last_.loss_scale > 0) optim::after_update(job_.loss_scale, last_.updated.skipped, progress_.step, scale);
  }
  last_.update_seconds = step.seconds(observe::StepPhase::update);
  ++progress_.step;
  progress_.samples += job_.batch_size;
}

// All that follows from a step: numbers, events, other shards for the next one, evaluations and checkpoints.
void Training::observe(const observe::StepScope& step, const exec::StepSums& sums) {
  const double seconds = step.seconds();
  const std::size_t shards = balancing_.own_shards().size();
  if (balancing_.decide(sums, progress_.step, seconds)) use_shares(step.number() + 1);
  const auto sent = reducer_->statistics();
  observers_->step_done({.step = progress_.step,
                         .seconds = seconds,
                         .compute = step.seconds(observe::StepPhase::compute),
                         .exchange = step.seconds(observe::StepPhase::reduce),
                         .update = last_.update_seconds,
                         .loss = last_.loss,
                         .learning_rate = last_.learning_rate,
                         .gradient_norm = last_.updated.norm,
                         .loss_scale = last_.loss_scale,
                         .skipped = last_.updated.skipped,
                         .shards = shards,
                         .next_shards = balancing_.own_shards().size(),
                         .shared_memory_bytes = sent.shared_memory_bytes,
                         .network_bytes = sent.network_bytes,
                         .checkpoint_failures = checkpointing_->failures()},
                        sums);
  after_step(sums);
}

void Training::trace_next_step() {
  if (!observers_->select_trace(progress_.step)) return;
  const auto& recorder = observers_->trace();
  executor_->trace(recorder.get());
  reducer_->trace(recorder.get());
  loader_->trace(recorder);
  checkpointing_->trace(recorder);
}

double Training::checked_loss(const exec::StepSums& sums) const {
  const double loss = sums.loss / sums.count;
  if (std::isfinite(loss)) return loss;
  observers_->loss_is_not_finite();
  throw Error(
      ExitCode::diverged,
      fmt::format("step {}: the loss is {}, not a finite number; try {}a smaller learning rate, a longer warm-up, "
                  "or clip_norm",
                  progress_.step + 1, std::isnan(loss) ? "nan" : "infinite",
                  last_.loss_scale > 0 ? "precision: bf16, whose range is larger, " : ""));
}

std::uint32_t Training::stop_requests() const {
  const StopRequest request = options_.watcher == nullptr ? StopRequest::none : options_.watcher->stop_request();
  const bool at_the_step = options_.stop_at > 0 && progress_.step + 1 >= options_.stop_at;
  if (signals_.asked() || at_the_step || request == StopRequest::now) return kStopRequested;
  return request == StopRequest::after_checkpoint ? kEndAfterCheckpoint : 0;
}

bool Training::is_period_over(const Span& every) const {
  const std::int64_t period = std::max<std::int64_t>(1, every.steps(steps_per_epoch_));
  return progress_.step % period == 0 || is_done();
}

std::int64_t Training::keep_every() const {
  const auto& every = job_.checkpoint.keep_every;
  return every ? std::max<std::int64_t>(1, every->steps(steps_per_epoch_)) : 0;
}

void Training::after_step(const exec::StepSums& sums) {
  if ((sums.flags & kSamplesReplaced) != 0) bad_samples_.report(progress_.step);
  emit_step(sums);
  if (observe::Board* const board = observers_->board(); board != nullptr && board->shows(progress_.step)) {
    updater_->fetch(model_);
    board->show(progress_.step, model_.parameters, updater_->gradient(), *pool_);
  }
  if (options_.watcher != nullptr) options_.watcher->step_done(progress_.step);
  checkpointing_->report();
  if (!options_.callbacks.empty()) state_.metrics = metrics_of(sums);
  call_back(&Callback::after_step);
  const bool best = validation_->wanted() && is_period_over(job_.evaluate.every) && evaluate();
  if (progress_.step % steps_per_epoch_ == 0) call_back(&Callback::after_epoch);
  const bool periodic = !job_.checkpoint.never && is_period_over(job_.checkpoint.every);
  const std::uint32_t ends = periodic ? kStopRequested | kEndAfterCheckpoint : kStopRequested;
  interrupted_ = (sums.flags & ends) != 0 && !is_done();
  const bool wanted = best || periodic || interrupted_;
  if (wanted && !checkpointing_->has_begun(progress_.step)) write_checkpoint(best);
  observers_->trace_step_done(progress_.step);
  trace_next_step();
}

void Training::call_back(CallbackMoment moment) {
  state_.step = progress_.step;
  state_.steps = steps_;
  state_.epoch = (progress_.step - 1) / steps_per_epoch_ + 1;
  state_.loss = last_.loss;
  state_.learning_rate = last_.learning_rate;
  state_.evaluated = progress_.metrics;
  state_.set_learning_rate_factor(progress_.learning_rate_factor);
  state_.stop(progress_.finished);
  train::call_back(context_, moment, state_);
  progress_.learning_rate_factor = state_.learning_rate_factor();
  progress_.finished = state_.is_stopped();
}

// Returns whether the model is the best so far.
bool Training::evaluate() {
  bool best = false;
  {
    const auto phase = observers_->enter(observe::StepPhase::evaluate, progress_.step);
    best = validation_->run(updater_->values(model_), balancing_, progress_);
  }
  call_back(&Callback::after_evaluation);
  return best;
}

void Training::write_checkpoint(bool best) {
  // Who asks a run to stop may not wait for long: that checkpoint has no data_content, and the run that goes on from it
  // makes the check.
  if (content_check_.is_due() && !interrupted_) content_check_.compare(progress_);
  const auto phase = observers_->enter(observe::StepPhase::checkpoint, progress_.step);
  updater_->fetch(model_);
  checkpointing_->write(progress_, best);
  if (context_.leads() && !job_.checkpoint.never) write_balance_record(job_.run_directory, balancing_.record());
}

void Training::finish_checkpoints() {
  const auto phase = observers_->enter(observe::StepPhase::checkpoint, progress_.step);
  checkpointing_->finish();
}

}  // namespace lockstep::train
