// The events of the training loop.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "config/config.hpp"
#include "lockstep/version.hpp"
#include "observe/telemetry/process_sample.hpp"
#include "observe/telemetry/rank_tables.hpp"
#include "observe/telemetry/text.hpp"
#include "run/train/catalogue.hpp"
#include "run/train/job_warnings.hpp"
#include "run/train/training.hpp"

namespace lockstep::train {

namespace {

/// Splits `total` seconds into phases that do not overlap: workers wait while the main thread is in `compute`.
std::map<std::string, double> shared_out(std::map<std::string, double> phases,
                                         const std::map<std::string, double>& waits, double total) {
  double known = 0;
  for (const auto& [name, seconds] : phases) known += seconds;
  for (const auto& [name, seconds] : waits) {
    if (seconds <= 0) continue;
    phases[name] = seconds;
    phases["compute"] = std::max(0.0, phases["compute"] - seconds);
  }
  phases["other"] = std::max(0.0, total - known);
  return phases;
}

std::int64_t elements_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::int64_t sum = 0;
  for (const ValueId id : ids) sum += graph.at(id).spec.elements();
  return sum;
}

std::int64_t trained_elements(const Graph& graph) {
  std::int64_t sum = 0;
  for (const ValueId id : graph.parameters) sum += graph.at(id).frozen ? 0 : graph.at(id).spec.elements();
  return sum;
}

/// "accuracy f1": the metrics of which more is better; nullopt if the job has no metrics.
std::optional<std::string> metrics_to_raise(const Graph& graph) {
  std::string names;
  for (const int metric : graph.metrics) {
    const Node& node = graph.nodes[metric];
    if (node.op->higher_is_better) names += (names.empty() ? "" : " ") + metric_name(node);
  }
  return graph.metrics.empty() ? std::nullopt : std::optional(names);
}

/// For each group of parameters that the run ends before it is unfrozen.
std::vector<std::string> frozen_to_the_end(const Run& run) {
  std::vector<std::string> messages;
  for (const ParameterGroup& group : run.job.optimizer.groups) {
    if (group.freeze_until.amount == 0 || group.freeze_until.steps(run.steps_per_epoch) < run.steps) continue;
    messages.push_back(fmt::format("{}: freeze_until: {}: the run ends by then, so the group is never trained",
                                   group.place.text(), to_string(group.freeze_until)));
  }
  return messages;
}

/// "20 tensors of weights.safetensors, in PyTorch's order; 2 as usual; 18 frozen"
std::string initialized_text(const checkpoint::Initialized& initialized, const Graph& graph, const std::string& file) {
  std::string text = fmt::format("{} of {}", telemetry::counted(initialized.from_file, "tensor"), file);
  if (!initialized.chosen.empty()) text += ", " + initialized.chosen;
  if (initialized.names == WeightNames::torch) text += ", in PyTorch's order";
  if (initialized.names == WeightNames::torchvision) text += ", by torchvision's names";
  if (initialized.names == WeightNames::huggingface) text += ", by Hugging Face's names";
  if (initialized.first_values > 0) text += fmt::format("; {} as usual", initialized.first_values);
  const auto frozen =
      std::count_if(graph.parameters.begin(), graph.parameters.end(), [&](ValueId id) { return graph.at(id).frozen; });
  if (frozen > 0) text += fmt::format("; {} frozen", frozen);
  return text;
}

}  // namespace

TrainResult Training::make_result() const {
  TrainResult result;
  result.steps = progress_.step;
  result.samples = (progress_.step - reached_.first_step) * run_.job.batch_size;
  result.seconds = reached_.training_seconds;
  result.samples_per_second = reached_.training_seconds > 0 ? result.samples / reached_.training_seconds : 0;
  result.loss = last_.loss;
  result.metrics = progress_.metrics;
  result.parameters_sha256 =
      checkpoint::parameters_sha256(whole_model_, engine_.model.parameters, run_.communicator, run_.context.timeout());
  result.interrupted = reached_.interrupted;
  return result;
}

void Training::emit_start() const {
  const auto& device = run_.context.device.info();
  events::Start event{.job = run_.job.name,
                      .ranks = run_.communicator.size(),
                      .threads = engine_.pool.size(),
                      .hosts = static_cast<std::int64_t>(run_.communicator.topology().host_names.size()),
                      .micro_batches = run_.job.micro_batches,
                      .batch_size = run_.job.batch_size,
                      .parameters = elements_of(run_.graph, run_.graph.parameters),
                      .states = elements_of(run_.graph, run_.graph.states),
                      .steps = run_.steps,
                      .epochs = static_cast<double>(run_.steps) / run_.steps_per_epoch,
                      .device = fmt::format("{}, {}, {}", device.model, device.isa, device.libraries),
                      .samples = run_.data.train->size(),
                      .validation_samples = run_.data.validation ? run_.data.validation->size() : 0,
                      .fingerprint = progress_.fingerprint,
                      .exactness = progress_.exactness,
                      .first_micro_batch_seconds = reached_.first_micro_batch_seconds,
                      .arena_bytes = engine_.executor->program().arena_bytes,
                      .seconds = seconds_since(run_.start),
                      .version = version()};
  if (const auto& algorithms = engine_.executor->algorithms(); !algorithms.empty()) {
    event.algorithms = fmt::format("{}", fmt::join(algorithms, "\n"));
  }
  if (auto micro_batches = config::explain_micro_batches(run_.job, catalogue_of(run_.context.registries));
      !micro_batches.empty()) {
    event.micro_batches_chosen = std::move(micro_batches);
  }
  const std::int64_t trained = trained_elements(run_.graph);
  if (trained < event.parameters) event.trained = trained;
  if (reached_.initialized)
    event.initialized = initialized_text(*reached_.initialized, run_.graph, run_.job.initialize->from);
  if (!engine_.placed_data.report.empty()) event.inputs = engine_.placed_data.report;
  if (auto weights = run_.data.weights_text(); !weights.empty()) event.weights = std::move(weights);
  if (!progress_.plugins.empty()) event.plugins = progress_.plugins;
  event.higher_is_better = metrics_to_raise(run_.graph);
  if (!run_.job.checkpoint.never) event.run_directory = run_.job.run_directory;
  event.data_sha256 = run_.data.sources_digest;
  if (run_.data.sources) {
    std::vector<std::string> lines;
    for (const auto& [path, digest] : run_.data.sources->path_digests()) lines.push_back(digest + "  " + path);
    if (!lines.empty()) event.sources = fmt::format("{}", fmt::join(lines, "\n"));
  }
  if (!run_.data.indexes.empty()) event.index = run_.data.was_cached() ? "cached" : "made";
  run_.context.emit(event);
  for (const events::Part& part : run_.parts.events()) run_.context.emit(part);
  run_.backend->emit_devices(run_.context);
  for (const auto& message : run_.data.warnings()) run_.context.warn(message);
  for (const auto& message : job_warnings(run_.graph, run_.data)) run_.context.warn(message);
  for (const auto& message : frozen_to_the_end(run_)) run_.context.warn(message);
}

std::map<std::string, double> Training::metrics_of(const exec::StepSums& sums) const {
  std::map<std::string, double> metrics;
  std::span<const double> left(sums.metrics);
  for (std::size_t m = 0; m < run_.graph.metrics.size(); ++m) {
    const Node& node = run_.graph.nodes[run_.graph.metrics[m]];
    const std::size_t own = exec::metric_values(run_.graph, m) + 1;
    if (!node.op->of_samples) add_metric(node, left.first(own), metrics);
    left = left.subspan(own);
  }
  average_over_numbers(run_.graph, metrics);
  return metrics;
}

void Training::emit_step(const exec::StepSums& sums) {
  if (!run_.context.leads() || run_.sinks.empty()) return;
  const double seconds = seconds_since(reached_.loop_start);
  const double wait = balancing_.data_wait_seconds();
  const double done = (progress_.step - reached_.first_step) * run_.job.batch_size;
  events::Step event{.step = progress_.step,
                     .epoch = (progress_.step - 1) / run_.steps_per_epoch + 1,
                     .loss = last_.loss,
                     .learning_rate = last_.learning_rate,
                     .metrics = metrics_of(sums),
                     .samples_per_second = done / seconds,
                     .data_wait_seconds = wait - reached_.reported_wait,
                     .seconds = seconds,
                     .gradient_norm = last_.updated.norm};
  if (last_.loss_scale > 0) {
    event.loss_scale = last_.loss_scale;
    event.skipped = last_.updated.skipped;
  }
  if (run_.communicator.size() > 1) {
    event.micro_batch_seconds = telemetry::largest_values(balancing_.micro_batch_seconds());
    event.micro_batch_seconds_of_all = telemetry::spread_of_values(balancing_.micro_batch_seconds());
  }
  if (auto joules = telemetry::largest_values(balancing_.energy()); !joules.empty()) {
    event.energy_joules = std::move(joules);
    event.energy_joules_of_all = telemetry::sum_of_values(balancing_.energy());
  }
  run_.context.emit(event);
  reached_.reported_wait = wait;
}

void Training::emit_end(TrainResult& result) {
  result.phases = shared_out(observers_.phases().seconds(),
                             {{"data_wait", balancing_.data_wait_seconds()}, {"part_wait", part_wait_seconds()}},
                             seconds_since(reached_.loop_start));
  const auto loader = engine_.loader->counters();
  events::End event{.outcome = outcome(result),
                    .steps = result.steps,
                    .samples = result.samples,
                    .seconds = result.seconds,
                    .samples_per_second = result.samples_per_second,
                    .metrics = result.metrics,
                    .phases = result.phases,
                    .interrupted = result.interrupted,
                    .parameters_sha256 = result.parameters_sha256,
                    .prefetch = {{"threads", loader.threads}, {"depth", loader.depth}},
                    .sample_cache_bytes = loader.cache_bytes};
  if (result.steps > reached_.first_step) event.loss = result.loss;
  if (event.outcome == "stopped early" && run_.job.early_stop && !progress_.stop_best.metric.empty()) {
    event.best = {{progress_.stop_best.metric, progress_.stop_best.value}};
    event.evaluations_since_best = progress_.evaluations_without_improvement;
  }
  if (const auto path = checkpointing_->path(result.steps); !path.empty()) event.checkpoint = path;
  if (checkpointing_->failures() > 0) event.checkpoints_failed = checkpointing_->failures();
  if (auto joules = telemetry::all_values(balancing_.energy()); !joules.empty()) {
    event.energy_joules_by_rank = std::move(joules);
  }
  gather_work_of_ranks(event);
  if (run_.communicator.size() > 1) add_waiting(event);
  run_.context.emit(event);
}

// Time that a worker of this rank has waited for other parts of the model.
double Training::part_wait_seconds() const {
  return engine_.executor->times().part_waits.sum() / engine_.pool.size();
}

void Training::gather_work_of_ranks(events::End& event) {
  const std::array<double, 8> mine = {static_cast<double>(balancing_.own_micro_batches().size()),
                                      engine_.bytes_sent(),
                                      reached_.bytes_by_formula,
                                      engine_.executor->times().compute_seconds,
                                      static_cast<double>(run_.data.bytes_read()),
                                      part_wait_seconds(),
                                      static_cast<double>(engine_.bytes_fetched_by_others()),
                                      static_cast<double>(telemetry::peak_resident_bytes())};
  events::ByRank part_waits, fetched, peaks;
  const std::array<events::ByRank*, 8> columns = {&event.micro_batches_by_rank,
                                                  &event.bytes_sent_by_rank,
                                                  &event.bytes_by_formula_by_rank,
                                                  &event.compute_seconds_by_rank,
                                                  &event.bytes_read_by_rank,
                                                  &part_waits,
                                                  &fetched,
                                                  &peaks};
  std::vector<double> all(mine.size() * run_.communicator.size());
  run_.communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                               {"report", static_cast<std::uint64_t>(progress_.step), run_.context.timeout()});
  for (std::size_t i = 0; i < all.size(); ++i) {
    (*columns.at(i % mine.size()))[i / mine.size()] = all[i];
  }
  event.peak_memory_bytes_by_rank = std::move(peaks);
  if (std::any_of(fetched.begin(), fetched.end(), [](const auto& rank) { return rank.second > 0; })) {
    event.fetched_parameter_bytes_by_rank = std::move(fetched);
  }
  if (run_.parts.is_cut()) event.part_wait_seconds_by_rank = std::move(part_waits);
}

std::string Training::outcome(const TrainResult& result) const {
  if (result.interrupted) return "interrupted";
  if (result.steps == reached_.first_step && !reached_.caught_up) return "already finished";
  return progress_.finished ? "stopped early" : "done";
}

// Which waits there were, and for whom; in seconds of the main thread, or of one worker.
void Training::add_waiting(events::End& event) const {
  const auto& times = balancing_.times();
  const auto by_rank = [&](double balance::RankTimes::*seconds) {
    events::ByRank values;
    for (std::size_t r = 0; r < times.size(); ++r) values[r] = times[r].*seconds;
    return values;
  };
  event.busy_seconds_by_rank = by_rank(&balance::RankTimes::compute);
  event.data_wait_seconds_by_rank = by_rank(&balance::RankTimes::data);
  event.waited_seconds_by_rank = by_rank(&balance::RankTimes::waited);
  event.held_up_seconds_by_rank = by_rank(&balance::RankTimes::held_up);
  event.reduce_seconds_by_rank = by_rank(&balance::RankTimes::reduce);
  event.update_seconds_by_rank = by_rank(&balance::RankTimes::update);
  event.share_moves = balancing_.moves();
}

}  // namespace lockstep::train
