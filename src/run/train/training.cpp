#include "run/train/training.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <span>
#include <utility>

#include "comm/reduce/micro_batch_assignment.hpp"
#include "config/config.hpp"
#include "core/stop_count.hpp"
#include "lockstep/error.hpp"
#include "run/train/known_speeds.hpp"
#include "run/train/not_finite.hpp"
#include "run/train/step_flags.hpp"
#include "step/optim/loss_scaling.hpp"
#include "step/optim/weight_average.hpp"

namespace lockstep::train {

namespace {

// A signal handler can only reach a global variable.
StopCount received;

void on_signal(int signal) {
  asked_to_stop = true;
  received.add(signal);
  if (received.requests() > 1) _exit(128 + signal);
}

void handle_all(void (*handler)(int)) {
  for (const int signal : kStopSignals) {
    if (signal != SIGHUP || !ignores_hangup()) std::signal(signal, handler);
  }
}

}  // namespace

SignalGuard::SignalGuard(bool active, bool passed_on) : active_(active) {
  if (!active_) return;
  received.reset(passed_on);
  handle_all(on_signal);
}

SignalGuard::~SignalGuard() {
  if (!active_) return;
  handle_all(SIG_DFL);
  asked_to_stop = false;
}

bool SignalGuard::asked() const {
  return active_ && received.requests() > 0;
}

namespace {

/// Calls this function on all callbacks, then applies what rank 0's have requested on all ranks. Collective, with the
/// same numbers on every rank. Throws Error(usage) on all ranks for a factor that is no valid multiplier of a learning
/// rate.
void ask_callbacks(const RunContext& run, CallbackMoment moment, TrainingState& state) {
  if (run.options.callbacks.empty()) return;
  for (Callback* const callback : run.options.callbacks) (callback->*moment)(state);
  struct {
    double factor;
    std::uint32_t stopped, checkpoint;
  } asked{state.learning_rate_factor(), state.is_stopped() ? 1U : 0U, state.wants_checkpoint() ? 1U : 0U};
  run.communicator.broadcast(std::as_writable_bytes(std::span(&asked, 1)), 0,
                             {"callbacks", static_cast<std::uint64_t>(state.step), run.timeout()});
  if (!std::isfinite(asked.factor) || asked.factor < 0) {
    throw Error(ExitCode::usage, fmt::format("step {}: expected a factor of the learning rate that is 0 or more, found "
                                             "{}, which a callback has set",
                                             state.step, asked.factor));
  }
  state.set_learning_rate_factor(asked.factor);
  state.stop(asked.stopped != 0);
  state.checkpoint(asked.checkpoint != 0);
}

/// What is new from this step on: "learning_rate.peak: 0.1, now 0.08".
std::optional<std::string> changed_settings(const checkpoint::Progress& progress) {
  const auto& earlier = progress.earlier_settings;
  if (earlier.empty() || earlier.back().until != progress.step) return std::nullopt;
  return fmt::format("{}", fmt::join(config::differences(earlier.back().job, progress.job), "; "));
}

}  // namespace

TrainResult Training::run() {
  emit_start();
  if (reached_.resumed && !is_done()) {
    run_.context.emit(events::Restart{
        .message = changed_settings(progress_), .step = progress_.step, .path = checkpointing_->path(progress_.step)});
  }
  observers_.start_tracing(progress_.step, engine_.executor->program().instructions.size());
  trace_next_step();
  reached_.loop_start = Clock::now();
  const bool continues = !is_done() || progress_.evaluation_due;
  reached_.interrupted = continues && is_stop_requested();
  if (progress_.evaluation_due && !reached_.interrupted) {
    complete_step(validation_.wanted(), 0);
    reached_.caught_up = !reached_.interrupted;
  }
  while (!is_done() && !reached_.interrupted) step();
  reached_.training_seconds = seconds_since(reached_.loop_start);
  observers_.finish_tracing();
  trace_next_step();
  bool best = false;
  if (!reached_.interrupted && validation_.wanted() && progress_.metrics.empty()) best = evaluate();
  if (best || lacks_checkpoint()) write_checkpoint(best);
  finish_checkpoints();
  bad_samples_.report(progress_.step);  // from the last evaluation
  if (!reached_.interrupted) {
    for (const auto& message : validation_.never_measured(progress_)) run_.context.warn(message);
  }
  TrainResult result = make_result();
  observers_.ended();
  emit_end(result);
  if (run_.parts.pulse() != nullptr) run_.parts.pulse()->close();
  return result;
}

void Training::step() {
  observe::StepScope step = observers_.step(progress_.step);
  const exec::Step work = feed();
  const std::vector<exec::MicroBatchScalars>& losses = compute(step, work);
  const exec::StepSums sums = reduce(step, losses);
  update(step, sums);
  observe(step, sums);
}

// What this rank computes in this step. Its inputs have been loading since earlier steps.
exec::Step Training::feed() {
  last_.loss_scale = progress_.loss_scale.scale;
  last_.gradient_scale = last_.loss_scale > 0 ? last_.loss_scale / run_.targets_in_mean : 1;
  engine_.begin_step(progress_.step, balancing_.assignments(), reduced_);
  reached_.bytes_by_formula += reached_.bytes_of_next_step;
  return {.number = static_cast<std::uint64_t>(progress_.step),
          .micro_batches = balancing_.own_micro_batches(),
          .loss_scale = static_cast<float>(last_.gradient_scale),
          .of_part = run_.parts.is_cut() ? &part_schedule_ : nullptr,
          .waves = comm::count_waves(balancing_.counts(), balancing_.workers_of_ranks())};
}

// Forward and backward of this rank's micro-batches. Finished gradient buckets are already being reduced meanwhile.
const std::vector<exec::MicroBatchScalars>& Training::compute(observe::StepScope& step, const exec::Step& work) {
  const auto phase = step.enter(observe::StepPhase::compute);
  const auto& losses = engine_.executor->train(work, *engine_.loader, engine_.buckets, *engine_.reducer);
  balancing_.computed(*engine_.executor, engine_.buckets);
  return losses;
}

// Waits until every bucket is summed over all micro-batches, and gathers what else all ranks need to know.
exec::StepSums Training::reduce(observe::StepScope& step, const std::vector<exec::MicroBatchScalars>& losses) {
  const auto phase = step.enter(observe::StepPhase::reduce);
  const std::vector<double> of_micro_batches = exec::scalars_of(losses);
  BalanceReport mine;
  comm::Scalars gathered = engine_.finish([&] {
    mine = balancing_.report({.reduce = phase.seconds(),
                              .last_update = last_.update_seconds,
                              .gpu = observers_.gpu_cause(),
                              .joules = observers_.energy()});
    const std::uint32_t flags = stop_requests() | mine.flags | bad_samples_.flags();
    return comm::OwnScalars{of_micro_batches, exec::scalars_per_micro_batch(run_.graph), mine.values, flags};
  });
  exec::StepSums sums = exec::sums_of(std::move(gathered), exec::scalars_per_micro_batch(run_.graph));
  last_.loss = checked_loss(sums);
  return sums;
}

void Training::update(observe::StepScope& step, const exec::StepSums& sums) {
  {
    const auto phase = step.enter(observe::StepPhase::update);
    optim::LossScale& scale = progress_.loss_scale;
    last_.learning_rate =
        run_.learning_rate.at(progress_.step, progress_.schedule_memory) * progress_.learning_rate_factor;
    const auto& average = run_.job.optimizer.average;
    const double weight =
        average ? optim::average_weight(*average, run_.steps_per_epoch, progress_.step + 1, progress_.averaged) : 0;
    last_.updated = engine_.updater->update(engine_.model, sums.count,
                                            {.learning_rate = last_.learning_rate,
                                             .step = progress_.step,
                                             .update = progress_.step - scale.skipped,
                                             .loss_scale = last_.gradient_scale,
                                             .average = weight});
    if (weight > 0 && !last_.updated.skipped) ++progress_.averaged;
    if (last_.loss_scale > 0) optim::after_update(run_.job.loss_scale, last_.updated.skipped, progress_.step, scale);
  }
  last_.update_seconds = step.seconds(observe::StepPhase::update);
  ++progress_.step;
  progress_.samples += run_.job.batch_size;
}

// Everything that follows a step: metrics, events, another micro-batch assignment, evaluations and checkpoints.
void Training::observe(const observe::StepScope& step, const exec::StepSums& sums) {
  const double seconds = step.seconds();
  const std::size_t micro_batches = balancing_.own_micro_batches().size();
  if (balancing_.decide(sums, progress_.step, seconds)) assign_micro_batches(step.number() + 1);
  const auto sent = engine_.reducer->statistics();
  observers_.step_done({.step = progress_.step,
                        .seconds = seconds,
                        .compute = step.seconds(observe::StepPhase::compute),
                        .reduce = step.seconds(observe::StepPhase::reduce),
                        .update = last_.update_seconds,
                        .loss = last_.loss,
                        .learning_rate = last_.learning_rate,
                        .gradient_norm = last_.updated.norm,
                        .loss_scale = last_.loss_scale,
                        .skipped = last_.updated.skipped,
                        .micro_batches = micro_batches,
                        .next_micro_batches = balancing_.own_micro_batches().size(),
                        .shared_memory_bytes = sent.shared_memory_bytes,
                        .network_bytes = sent.network_bytes + engine_.bytes_fetched_by_others(),
                        .checkpoint_failures = checkpointing_->failures(),
                        .workers = engine_.executor->times()},
                       sums);
  after_step(sums);
}

// Assigns this rank's micro-batches from this step on.
void Training::assign_micro_batches(std::uint64_t from_step) {
  // A part that reads no inputs of the samples loads none.
  if (!run_.parts.graph().inputs.empty()) engine_.loader->assign(from_step, balancing_.own_micro_batches());
  order_gradients();
  reached_.bytes_of_next_step = engine_.bytes_of_step(balancing_.assignment());
}

void Training::order_gradients() {
  reduced_ = balancing_.assignment();
  if (run_.parts.is_cut()) {
    part_schedule_ = run_.parts.schedule(balancing_.assignments(), balancing_.workers_of_ranks(), true);
    reduced_.order = part_schedule_.backwards;
    reduced_.waves = part_schedule_.waves_of_gradients;
  } else {
    reduced_.waves = comm::even_waves(reduced_, balancing_.workers_of_ranks());
  }
}

void Training::trace_next_step() {
  if (!observers_.select_trace(progress_.step)) return;
  const auto& recorder = observers_.trace();
  engine_.executor->trace(recorder.get());
  engine_.reducer->trace(recorder.get());
  engine_.loader->trace(recorder);
  checkpointing_->trace(recorder);
}

double Training::checked_loss(const exec::StepSums& sums) {
  if (sums.count == 0) {
    throw Error(ExitCode::data,
                fmt::format("step {}: nothing of the batch counts: all of its samples have weight 0, or "
                            "all of its targets are ignored; use a larger batch",
                            progress_.step + 1));
  }
  const double loss = sums.loss / sums.count;
  if (std::isfinite(loss)) return loss;
  observers_.loss_is_not_finite();
  engine_.updater->fetch(engine_.model);
  const std::string where = not_finite(engine_.model.parameters, engine_.model.states);
  throw Error(
      ExitCode::diverged,
      fmt::format("step {}: the loss is {}, not a finite number{}; try {}a smaller learning rate, a longer warm-up, "
                  "or clip_norm",
                  progress_.step + 1, std::isnan(loss) ? "nan" : "infinite",
                  where.empty() ? "" : fmt::format(": the model's {}", where),
                  last_.loss_scale > 0 ? "precision: bf16, whose range is larger, " : ""));
}

StopRequest Training::stop_request() const {
  if (signals_.asked()) return StopRequest::now;
  return run_.options.watcher == nullptr ? StopRequest::none : run_.options.watcher->stop_request();
}

comm::StopPoll Training::stop_poll() const {
  return [this] { return stop_request() == StopRequest::now; };
}

std::uint32_t Training::stop_requests() const {
  const bool at_the_step = run_.options.stop_at > 0 && progress_.step + 1 >= run_.options.stop_at;
  const StopRequest request = stop_request();
  if (at_the_step || request == StopRequest::now) return kStopRequested;
  return request == StopRequest::after_checkpoint ? kEndAfterCheckpoint : 0;
}

// Whether any rank has been asked to stop before its first step.
bool Training::is_stop_requested() {
  const auto asked = comm::work_together(run_.communicator, {"start", 0, run_.context.timeout()},
                                         [&](comm::WorkProgress& /*at once*/) { return stop_poll()(); });
  return std::any_of(asked.begin(), asked.end(), [](bool of_rank) { return of_rank; });
}

// A run that is stopped before its first step has nothing to save. The last checkpoint must say that the data have been
// compared, which a stop may have left to this run.
bool Training::lacks_checkpoint() const {
  if (checkpointing_->has_begun(progress_.step)) {
    return !reached_.interrupted && content_check_.is_due() && !progress_.metadata.contains("data_content");
  }
  return !reached_.interrupted || progress_.step > reached_.first_step;
}

bool Training::is_period_over(const Span& every) const {
  const std::int64_t period = std::max<std::int64_t>(1, every.steps(run_.steps_per_epoch));
  return progress_.step % period == 0 || is_done();
}

void Training::after_step(const exec::StepSums& sums) {
  if ((sums.flags & kSamplesReplaced) != 0) bad_samples_.report(progress_.step);
  emit_step(sums);
  if (observe::Board* const board = observers_.board(); board != nullptr && board->shows(progress_.step)) {
    engine_.updater->fetch(engine_.model);
    board->show(progress_.step, engine_.model.parameters, engine_.updater->gradient(), engine_.pool,
                engine_.slices && engine_.slices->divides_parameters());
  }
  if (run_.options.watcher != nullptr) run_.options.watcher->step_done(progress_.step);
  checkpointing_->report();
  if (!run_.options.callbacks.empty()) state_.metrics = metrics_of(sums);
  call_back(&Callback::after_step);
  complete_step(validation_.wanted() && is_period_over(run_.job.evaluate.every), sums.flags);
  observers_.trace_step_done(progress_.step);
  trace_next_step();
}

// The evaluation and the checkpoint after a step. If the evaluation is stopped, the checkpoint says that it is due, and
// the run that resumes from it begins here, so that it continues as if nothing had happened.
void Training::complete_step(bool evaluates, std::uint32_t flags) {
  const bool was_due = std::exchange(progress_.evaluation_due, false);
  const bool best = evaluates && evaluate();
  const bool is_complete = !progress_.evaluation_due;
  if (is_complete && progress_.step % run_.steps_per_epoch == 0) call_back(&Callback::after_epoch);
  const bool asked = state_.wants_checkpoint();
  state_.checkpoint(false);
  const bool periodic = !run_.job.checkpoint.never && (asked || is_period_over(run_.job.checkpoint.every));
  const std::uint32_t ends = periodic ? kStopRequested | kEndAfterCheckpoint : kStopRequested;
  if ((flags & ends) != 0 && !is_done()) reached_.interrupted = true;
  const bool wanted = (best || periodic || reached_.interrupted) && !checkpointing_->has_begun(progress_.step);
  if (wanted || (was_due && is_complete)) write_checkpoint(best);
}

void Training::call_back(CallbackMoment moment) {
  state_.step = progress_.step;
  state_.steps = run_.steps;
  state_.epoch = (progress_.step - 1) / run_.steps_per_epoch + 1;
  state_.loss = last_.loss;
  state_.learning_rate = last_.learning_rate;
  state_.evaluated = progress_.metrics;
  state_.set_learning_rate_factor(progress_.learning_rate_factor);
  state_.stop(progress_.finished);
  ask_callbacks(run_.context, moment, state_);
  progress_.learning_rate_factor = state_.learning_rate_factor();
  progress_.finished = state_.is_stopped();
}

// Returns whether the model is the best so far. If it is stopped, the run is interrupted, and the evaluation due.
bool Training::evaluate() {
  std::optional<bool> best;
  {
    const auto phase = observers_.enter(observe::StepPhase::evaluate, progress_.step);
    const auto& average = run_.job.optimizer.average;
    const bool of_average = average && average->evaluate && progress_.averaged > 0;
    const auto swap = [&] { engine_.updater->swap_average(engine_.model, progress_.step); };
    if (of_average) swap();
    best = validation_.run(engine_.updater->values(engine_.model), balancing_, progress_, stop_poll());
    if (of_average) swap();
  }
  progress_.evaluation_due = !best;
  if (!best) {
    reached_.interrupted = true;
    return false;
  }
  call_back(&Callback::after_evaluation);
  return *best;
}

void Training::write_checkpoint(bool best) {
  // An interrupted run must not wait for the content check: its checkpoint has no data_content, and the run that
  // resumes from it makes the check.
  if (content_check_.is_due() && !reached_.interrupted) {
    reached_.interrupted = !content_check_.compare(progress_, stop_poll());
  }
  const auto phase = observers_.enter(observe::StepPhase::checkpoint, progress_.step);
  content_check_.require_unchanged(progress_.step);
  engine_.updater->fetch(engine_.model);
  const auto where = not_finite_on_any_rank(engine_.model, run_.communicator, run_.context.timeout());
  if (!where.empty()) {
    throw Error(ExitCode::diverged,
                fmt::format("step {}: after the update, the model's {}: it is not stored; try a smaller learning rate, "
                            "a longer warm-up, or clip_norm",
                            progress_.step, where));
  }
  checkpointing_->write(progress_, best);
  if (!run_.context.leads() || run_.job.checkpoint.never) return;
  write_balance_record(run_.job.run_directory, balancing_.record());
}

void Training::finish_checkpoints() {
  const auto phase = observers_.enter(observe::StepPhase::checkpoint, progress_.step);
  checkpointing_->finish();
}

}  // namespace lockstep::train
