#include "observe/run_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <thread>
#include <utility>

#include "comm/transport/recorded.hpp"
#include "comm/transport/topology.hpp"
#include "core/files.hpp"
#include "device/device.hpp"
#include "graph/workload.hpp"
#include "lockstep/version.hpp"
#include "observe/telemetry/exporter.hpp"
#include "observe/telemetry/exposition.hpp"
#include "observe/telemetry/process_sample.hpp"
#include "observe/telemetry/unix_time.hpp"

namespace lockstep::observe {

using telemetry::Metric;
using telemetry::unix_time;

void MetricsEvents::event(const events::Event& event) {
  if (const auto* checkpoint = std::get_if<events::Checkpoint>(&event)) on_checkpoint(*checkpoint);
  if (const auto* evaluation = std::get_if<events::Evaluation>(&event)) on_evaluation(*evaluation);
  if (std::holds_alternative<events::BadSample>(event)) metrics_.add(Metric::bad_samples, 1);
  if (const auto* balance = std::get_if<events::Balance>(&event)) {
    metrics_.add(Metric::balancer_moves, 1);
    metrics_.add(Metric::balancer_micro_batches_moved, static_cast<double>(balance->micro_batches_moved));
  }
}

void MetricsEvents::on_checkpoint(const events::Checkpoint& checkpoint) {
  metrics_.add(Metric::checkpoints, 1);
  metrics_.add(Metric::checkpoint_seconds, checkpoint.seconds);
  metrics_.add(Metric::checkpoint_blocked, checkpoint.blocked_seconds);
  metrics_.set(Metric::checkpoint_last_seconds, checkpoint.seconds);
  metrics_.set(Metric::checkpoint_bytes, static_cast<double>(checkpoint.bytes));
  metrics_.set(Metric::checkpoint_step, static_cast<double>(checkpoint.step));
  metrics_.set(Metric::checkpoint_time, unix_time());
}

void MetricsEvents::on_evaluation(const events::Evaluation& evaluation) {
  metrics_.add(Metric::evaluations, 1);
  metrics_.set(Metric::validation_loss, evaluation.loss);
  const auto& info = telemetry::info_of(Metric::validation_metric);
  for (std::size_t i = 0; i < telemetry::slots_of(info); ++i) {
    const auto found = evaluation.metrics.find(metrics_.series_name(info, i));
    if (found != evaluation.metrics.end()) metrics_.set(Metric::validation_metric, found->second, i);
  }
}

using telemetry::Activity;
using telemetry::Metric;
using telemetry::Phase;
using telemetry::State;
using telemetry::unix_time;

namespace {

constexpr int kHighestPort = 65535;
constexpr std::chrono::milliseconds kLingerStep{20};
constexpr double kAutoLinger = 30;     // seconds: twice Prometheus' usual interval
constexpr double kShortestLook = 0.8;  // seconds; the shortest interval between two looks

}  // namespace

std::unique_ptr<RunMetrics> RunMetrics::make(const RankContext& run) {
  if (run.job.telemetry.prometheus_port == 0) return nullptr;
  return std::unique_ptr<RunMetrics>(new RunMetrics(run));
}

RunMetrics::RunMetrics(const RankContext& run)
    : run_(run),
      shared_targets_(run.job.telemetry.targets_folder, run_name(), run.job.run_directory),
      metrics_(std::make_shared<telemetry::RankMetrics>()),
      events_(*metrics_),
      goodput_(run.leads() && !run.job.checkpoint.never ? run.job.run_directory : "", unix_time()),
      recorder_(comm::recorder_of(run.communicator)) {
  for (const auto& metric : telemetry::metric_list()) {
    const bool counts = metric.kind != telemetry::MetricKind::gauge;
    const bool own =
        metric.scope == telemetry::MetricScope::rank || (metric.scope == telemetry::MetricScope::job && run_.leads());
    const bool later = metric.id == Metric::tokens || metric.id == Metric::updates_skipped;  // for some jobs only
    if (counts && own && !later) metrics_->begin(metric.id);
  }
  metrics_->set(State::starting);
  metrics_->set(Metric::start_time, unix_time());
}

RunMetrics::~RunMetrics() {
  metrics_->set(ended_ ? State::ended : State::failed);
  if (!exporter_) return;
  const std::size_t scrapes = exporter_->scrapes();
  const double asked = run_.job.telemetry.linger_seconds;
  // One that has failed is missed soon enough, and its launch waits for it to start again.
  const double patience = asked >= 0 ? asked : ended_ && scrapes > 0 ? kAutoLinger : 0;
  const auto end = Clock::now();
  while (exporter_->scrapes() == scrapes && seconds_since(end) < patience) {
    std::this_thread::sleep_for(kLingerStep);
  }
  if (!run_.leads()) return;
  auto labels = target_labels();
  labels.emplace_back("host", run_.communicator.topology().host_name(0));
  (void)try_write_whole_file(path("final.prom"), telemetry::snapshot_text(*metrics_, 0, labels));
  if (ended_) withdraw_targets();
}

std::string RunMetrics::write_targets(const std::string& json) {
  try {
    shared_targets_.write(json, read_whole_file(path("targets.json")).value_or(""));
    write_whole_file(path("targets.json"), json);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void RunMetrics::withdraw_targets() {
  (void)try_write_whole_file(path("targets.json"), "[]\n");
  shared_targets_.withdraw();
}

std::string RunMetrics::run_name() const {
  const std::filesystem::path directory(run_.job.run_directory);
  return (directory.has_filename() ? directory.filename() : directory.parent_path().filename()).string();
}

std::string RunMetrics::path(const char* name) const {
  return fmt::format("{}/metrics/{}", run_.job.run_directory, name);
}

telemetry::MetricLabels RunMetrics::target_labels() const {
  return {{"job", run_.job.name}, {"run", run_name()}};
}

void RunMetrics::serve(const RunFacts& facts, const RankGpu& gpu, const data::Loader& loader,
                       std::function<double()> bytes_read) {
  loader_ = &loader;
  bytes_read_ = std::move(bytes_read);
  began_ = Clock::now();
  begin_rank(facts);
  if (run_.leads()) begin_job(facts);
  open_gpu(gpu);
  const auto& telemetry = run_.job.telemetry;
  const int rank = run_.communicator.rank();
  const int port = telemetry.prometheus_port + run_.communicator.topology().local_rank(rank);
  exporter_ = std::make_unique<telemetry::Exporter>(
      telemetry::ExporterOptions{.address = telemetry.prometheus_address,
                                 .port = port > kHighestPort ? 0 : port,
                                 .rank = rank,
                                 .key = run_.job.place_of("job.telemetry.prometheus.address").text()},
      metrics_, [this](telemetry::RankMetrics& metrics) { sample(metrics); });
  publish_ports();
  goodput_.training_begins(unix_time());
  metrics_->set(State::training);
}

void RunMetrics::begin_rank(const RunFacts& facts) {
  const auto& device = run_.device.info();
  const auto cost = cost_of(facts.graph);
  const int rank = run_.communicator.rank();
  const std::string& host = run_.communicator.topology().host_name(rank);
  const SourceKind kind = run_.job.data.train.kind;
  counts_tokens_ = kind == SourceKind::text || kind == SourceKind::tokens;
  if (counts_tokens_) metrics_->begin(Metric::tokens);
  has_loss_ = facts.graph.loss >= 0;
  flops_a_micro_batch_ = cost.forward_flops + cost.backward_flops;
  peak_flops_ = run_.device.peak_flops(facts.workers);
  const std::int64_t samples = run_.job.batch_size / run_.job.micro_batches;
  samples_a_micro_batch_ = samples;
  workers_ = facts.workers;
  if (peak_flops_ > 0) metrics_->set(Metric::peak_flops, peak_flops_);
  metrics_->set(Metric::last_step_time, unix_time());
  metrics_->describe(Metric::build_info, {{"version", std::string(version())}, {"libraries", device.libraries}});
  metrics_->set(Metric::build_info, 1);
  const int local = run_.communicator.topology().local_rank(rank);
  metrics_->describe(Metric::rank_info, {{"device", device.model},
                                         {"host", host},
                                         {"isa", device.isa},
                                         {"local_rank", std::to_string(local)},
                                         {"workers", std::to_string(facts.workers)}});
  metrics_->set(Metric::rank_info, 1);
  const auto& layers = facts.graph.nodes;
  metrics_->describe(Metric::part_info, {{"part", std::to_string(facts.part)},
                                         {"first", layers.empty() ? "" : layers.front().name},
                                         {"last", layers.empty() ? "" : layers.back().name},
                                         {"digest", run_.canonical.digest.substr(0, 12)}});
  metrics_->set(Metric::part_info, 1);
  metrics_->describe(Metric::device_micro_batch_seconds,
                     {{"device", device.model}, {"host", host}, {"workload", workload_of(facts.graph)}});
}

void RunMetrics::begin_job(const RunFacts& facts) {
  period_steps_ = facts.checkpoint_every;
  steps_per_epoch_ = facts.steps_per_epoch;
  metrics_->name_series(Metric::validation_metric, run_.job.reported());
  metrics_->describe(Metric::job_info, {{"name", run_.job.name},
                                        {"digest", run_.canonical.digest.substr(0, 12)},
                                        {"exact", std::string(name_of(run_.job.exact))},
                                        {"exactness", facts.exactness}});
  metrics_->set(Metric::job_info, 1);
  if (run_.job.data.bad_samples == BadWhenRead::replace) metrics_->begin(Metric::bad_samples);
  if (run_.job.precision == Precision::fp16) metrics_->begin(Metric::updates_skipped);
  metrics_->set(Metric::planned_steps, static_cast<double>(facts.steps));
  metrics_->set(Metric::step, static_cast<double>(facts.first_step));
  metrics_->set(Metric::world_size, run_.communicator.size());
  metrics_->set(Metric::hosts, static_cast<double>(run_.communicator.topology().host_names.size()));
  const auto& reasons = telemetry::info_of(Metric::restarts).values;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const auto found = facts.restarts.find(reasons[i]);
    if (found != facts.restarts.end()) metrics_->set(Metric::restarts, found->second, i);
  }
}

void RunMetrics::open_gpu(const RankGpu& gpu) {
  if (!gpu.library) return;
  computes_on_gpu_ = gpu.computes;
  std::string problem;  // was already reported at the start of the run
  gpu_ = telemetry::GpuSample::open(gpu.library, gpu.device, problem);
  if (gpu_) gpu_->describe(*metrics_);
}

// Rank 0 writes down where each rank is scraped, and warns about ports that differ from the requested ones.
void RunMetrics::publish_ports() {
  const int mine = exporter_->port();
  std::vector<int> ports(run_.communicator.size());
  run_.communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(ports)),
                               {"start", 0, run_.timeout()});
  if (!run_.leads()) return;
  const auto& topology = run_.communicator.topology();
  const auto& telemetry = run_.job.telemetry;
  const comm::Hosts hosts(topology);
  std::vector<telemetry::ScrapeTarget> targets;
  for (int r = 0; r < run_.communicator.size(); ++r) {
    const int port = ports[r];
    const int asked = telemetry.prometheus_port + hosts.local_rank(r);
    targets.push_back({topology.host_name(r), port});
    if (port == asked) continue;
    const std::string why = r == 0 && !exporter_->problem().empty() ? exporter_->problem() : "not available";
    run_.warn(
        fmt::format("rank {}: port {} on {} is {}; its metrics are served at port {}, as "
                    "{} says",
                    r, asked, topology.host_name(r), why, port, path("targets.json")));
  }
  const std::string problem =
      write_targets(telemetry::targets_json(targets, telemetry.prometheus_address, target_labels()));
  if (!problem.empty()) {
    run_.warn("Prometheus cannot discover the ranks: " + problem);
  }
}

// Runs on a thread of the exporter.
void RunMetrics::sample(telemetry::RankMetrics& metrics) {
  telemetry::sample_process(metrics);
  const auto loader = loader_->counters();
  metrics.set(Metric::batches, static_cast<double>(loader.batches));
  metrics.set(Metric::late_batches, static_cast<double>(loader.made_by_caller));
  metrics.set(Metric::prefetch_depth, loader.depth);
  metrics.set(Metric::prefetch_threads, loader.threads);
  metrics.set(Metric::sample_cache_bytes, static_cast<double>(loader.cache_bytes));
  metrics.set(Metric::data_bytes_read, bytes_read_());
  if (recorder_) metrics.set(Metric::waiting_for_rank, recorder_->activity().peer);
  if (gpu_) look_at_gpu(metrics);
}

// Two scrapes within a second share one look: a rank's own time is only known in whole steps.
void RunMetrics::look_at_gpu(telemetry::RankMetrics& metrics) {
  gpu_->sample(metrics);
  const double seconds = seconds_since(looked_);
  if (seconds < kShortestLook) return;
  double own = 0;
  for (const Phase phase : {Phase::compute, Phase::reduce_wait, Phase::reduce, Phase::update, Phase::evaluate}) {
    own += metrics.get(Metric::phase_seconds, static_cast<std::size_t>(phase));
  }
  bool throttled = false;
  for (std::size_t i = 0; i < telemetry::info_of(Metric::gpu_throttled).values.size(); ++i) {
    throttled = throttled || metrics.get(Metric::gpu_throttled, i) > 0;
  }
  gpu_watch_.add({.utilization = metrics.get(Metric::gpu_utilization),
                  .own = computes_on_gpu_ ? (own - seconds_on_gpu_) / seconds : 0,
                  .watts = metrics.get(Metric::gpu_power),
                  .micro_batch_seconds = metrics.get(Metric::micro_batch_compute),
                  .throttled = throttled});
  looked_ = Clock::now();
  seconds_on_gpu_ = own;
  gpu_cause_ = gpu_watch_.cause();
  metrics.set(Metric::gpu_co_tenant, gpu_cause_ == telemetry::GpuCause::co_tenant ? 1 : 0);
}

void RunMetrics::step_done(const StepReport& report, const exec::StepSums& sums) {
  const int ranks = run_.communicator.size();
  measures_.resize(ranks);
  for (int r = 0; r < ranks; ++r) {
    measures_[r] = balance::from_values(sums.rank_values.data() + static_cast<std::ptrdiff_t>(r) * balance::kMeasures);
  }
  telemetry::RankMetrics& to = *metrics_;
  if (steps_++ == 0) to.set(Metric::first_step_time, unix_time());
  to.add(Metric::steps, 1);
  to.observe(Metric::step_seconds, report.seconds);
  to.set(Metric::last_step_time, unix_time());
  // The last rank to reach the all-reduce has waited for nobody; its time there is that of the all-reduce itself.
  double shortest = measures_.front().reduce;
  for (const auto& rank : measures_) shortest = std::min(shortest, rank.reduce);
  const double waited = measures_[run_.communicator.rank()].reduce - shortest;
  add_phases(report, waited);
  add_workers(report, waited);
  add_compute(report);
  to.set(Metric::micro_batches, static_cast<double>(report.next_micro_batches));
  to.set(Metric::share_ratio, static_cast<double>(report.next_micro_batches) / run_.job.micro_batches);
  to.set(Metric::reduce_bytes, static_cast<double>(report.shared_memory_bytes), 0);
  to.set(Metric::reduce_bytes, static_cast<double>(report.network_bytes), 1);
  if (counts_tokens_ && has_loss_) {
    to.add(Metric::tokens, sums.count * static_cast<double>(report.micro_batches) / run_.job.micro_batches);
  }
  if (!run_.leads()) return;
  set_job(report);
  add_run_time(report.step);
}

void RunMetrics::ended() {
  ended_ = true;
  if (!run_.leads()) return;
  add_run_time(goodput_.seconds().step);  // since the last step
  note_run_time();
}

void RunMetrics::add_run_time(std::int64_t step) {
  const auto spent = [&](Phase phase) { return metrics_->get(Metric::phase_seconds, static_cast<std::size_t>(phase)); };
  const Waits waits{.checkpoint = spent(Phase::checkpoint),
                    .data = spent(Phase::data_wait),
                    .peers = spent(Phase::reduce_wait) + spent(Phase::part_wait)};
  goodput_.step_done(step, waits, unix_time());
  if (goodput_.is_due(unix_time())) note_run_time();
  const events::Goodput& sums = goodput_.seconds();
  const std::array seconds{sums.useful_seconds,    sums.repeated_seconds,  sums.checkpoint_seconds,
                           sums.data_wait_seconds, sums.peer_wait_seconds, sums.restart_seconds};
  for (std::size_t i = 0; i < seconds.size(); ++i) metrics_->set(Metric::run_seconds, seconds.at(i), i);
}

void RunMetrics::note_run_time() {
  goodput_.noted(unix_time());
  run_.emit(goodput_.seconds());
}

void RunMetrics::add_phases(const StepReport& report, double waited) {
  const balance::RankMeasure& mine = measures_[run_.communicator.rank()];
  const double data = std::min(mine.data / workers_, report.compute);
  const double parts_waited = report.workers.part_waits.sum() - worker_times_.part_waits.sum();
  const double parts = std::min(parts_waited / workers_, report.compute - data);
  metrics_->add(Phase::data_wait, data);
  metrics_->add(Phase::part_wait, parts);
  metrics_->add(Phase::compute, report.compute - data - parts);
  metrics_->add(Phase::reduce_wait, waited);
  metrics_->add(Phase::reduce, std::max(0.0, report.reduce - waited));
  metrics_->add(Phase::update, report.update);
  metrics_->set(Metric::waiting_ratio, report.seconds > 0 ? waited / report.seconds : 0);
}

// A worker without a task is idle while its rank's other workers, or other ranks, still compute.
void RunMetrics::add_workers(const StepReport& report, double waited) {
  const exec::MicroBatchTimes &now = report.workers, before = std::exchange(worker_times_, now);
  double idle = workers_ * (report.compute + waited);
  const auto add = [&](Activity activity, double seconds) {
    metrics_->add(Metric::worker_seconds, seconds, static_cast<std::size_t>(activity));
    idle -= seconds;
  };
  add(Activity::compute, now.compute_seconds + now.merge_seconds - before.compute_seconds - before.merge_seconds);
  add(Activity::data_wait, now.data_seconds - before.data_seconds);
  add(Activity::activation_wait, now.part_waits.activations - before.part_waits.activations);
  add(Activity::gradient_wait, now.part_waits.gradients - before.part_waits.gradients);
  add(Activity::send_wait, now.part_waits.sends - before.part_waits.sends);
  add(Activity::idle, std::max(0.0, idle));
}

void RunMetrics::add_compute(const StepReport& report) {
  const balance::RankMeasure& mine = measures_[run_.communicator.rank()];
  telemetry::RankMetrics& to = *metrics_;
  const double micro_batches = report.micro_batches;
  if (has_loss_) to.add(Metric::samples, micro_batches * samples_a_micro_batch_);
  to.add(Metric::micro_batches_computed, micro_batches);
  to.add(Metric::flops, micro_batches * flops_a_micro_batch_);
  if (peak_flops_ > 0)
    to.set(Metric::flops_utilization, micro_batches * flops_a_micro_batch_ / report.seconds / peak_flops_);
  if (report.micro_batches == 0) return;
  to.add(Metric::micro_batch_compute_total, mine.compute);
  to.set(Metric::micro_batch_compute, mine.compute / micro_batches);
  to.set(Metric::device_micro_batch_seconds,
         to.get(Metric::micro_batch_compute_total) / to.get(Metric::micro_batches_computed));
}

void RunMetrics::set_job(const StepReport& report) {
  telemetry::RankMetrics& to = *metrics_;
  const double unknown = std::numeric_limits<double>::quiet_NaN();  // a NaN exports no series
  if (report.gradient_norm && !std::isfinite(*report.gradient_norm)) to.add(Metric::non_finite, 1, 1);
  to.set(Metric::loss, report.loss);
  to.set(Metric::gradient_norm, report.gradient_norm.value_or(unknown));
  to.set(Metric::learning_rate, report.learning_rate);
  if (report.loss_scale > 0) {
    to.set(Metric::loss_scale, report.loss_scale);
    to.add(Metric::updates_skipped, report.skipped ? 1 : 0);
  }
  to.set(Metric::step, static_cast<double>(report.step));
  to.set(Metric::epoch, report.step / steps_per_epoch_);
  to.set(Metric::checkpoint_failures, static_cast<double>(report.checkpoint_failures));
  if (period_steps_ > 0) to.set(Metric::checkpoint_interval, period_steps_ * seconds_since(began_) / steps_);
}

}  // namespace lockstep::observe
