#include "train/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backend/device.hpp"
#include "backend/threads.hpp"
#include "core/glob.hpp"
#include "lockstep/error.hpp"
#include "lockstep/version.hpp"
#include "train/job_graph.hpp"
#include "train/safetensors.hpp"
#include "train/start_check.hpp"

namespace lockstep::train {

namespace {

constexpr std::uint32_t kStopAsked = 1;

int worker_count(const Job& job, const Communicator& communicator, std::size_t shards) {
  const int local = communicator.topology().local_size(communicator.rank());
  const int threads = job.threads > 0 ? job.threads : std::max(1, backend::available_cores() / local);
  return std::clamp(threads, 1, std::max(1, static_cast<int>(shards)));
}

comm::ExchangeLayout exchange_layout(const exec::GradientLayout& layout, std::int64_t shards) {
  comm::ExchangeLayout exchange;
  exchange.shards = static_cast<int>(shards);
  for (const auto& bucket : layout.buckets) {
    exchange.bucket_elements.push_back(bucket.elements);
    exchange.cuts.push_back(bucket.cuts);
  }
  return exchange;
}

std::int64_t total_steps(const Job& job, std::int64_t steps_per_epoch) {
  return job.steps > 0 ? job.steps : std::llround(job.epochs * static_cast<double>(steps_per_epoch));
}

}  // namespace

Training::Training(const Job& job, Communicator& communicator, const Registries& registries,
                   const TrainerOptions& options, const DataSets& own)
    : job_(job),
      communicator_(communicator),
      registries_(registries),
      options_(options),
      start_(Clock::now()),
      data_(prepare_data(job, registries.augmentations, own)),
      graph_(make_job_graph(job, data_, registries)),
      steps_per_epoch_(data_.train->size() / job.batch_size),
      steps_(total_steps(job, steps_per_epoch_)),
      assignment_(assignment()),
      schedule_(job.learning_rate, job.batch_size, steps_, steps_per_epoch_),
      signals_(options.handle_signals) {
  check_start();
  const auto& mine = assignment_.shards_of_rank.at(static_cast<std::size_t>(communicator.rank()));
  pool_ = std::make_unique<exec::WorkerPool>(worker_count(job, communicator, mine.size()));
  executor_ = std::make_unique<exec::Executor>(graph_, Mode::training, DeviceKind::cpu, *pool_, job.seed);
  layout_ = exec::make_gradient_layout(executor_->program(), job.bucket_bytes);
  exchange_layout_ = exchange_layout(layout_, job.shards);
  exchange_ =
      comm::make_exchange(communicator, exchange_layout_, {.exact = job.exact != "never", .timeout = timeout()});
  updater_ = std::make_unique<Updater>(graph_, executor_->program(), layout_, job.optimizer, job.clip_norm,
                                       static_cast<int>(job.shards));
  model_ = updater_->make_model(job.seed);
  resume();
  executor_->use(model_.parameters, model_.states);
  make_loader();
}

std::chrono::milliseconds Training::timeout() const {
  return std::chrono::milliseconds(static_cast<std::int64_t>(job_.timeout_seconds * 1000));
}

comm::Assignment Training::assignment() const {
  const int ranks = communicator_.size(), shards = static_cast<int>(job_.shards);
  if (job_.balance_weights.empty()) return comm::place_shards(comm::equal_counts(shards, ranks));
  const std::string model = backend::cpu_info().model;
  std::vector<double> weights;
  for (int rank = 0; rank < ranks; ++rank) {
    const Topology& topology = communicator_.topology();
    const auto& host =
        topology.host_names.at(static_cast<std::size_t>(topology.host_of.at(static_cast<std::size_t>(rank))));
    const auto by_host = job_.balance_weights.find(host), by_model = job_.balance_weights.find(model);
    weights.push_back(by_host != job_.balance_weights.end()    ? by_host->second
                      : by_model != job_.balance_weights.end() ? by_model->second
                                                               : 1.0);
  }
  return comm::place_shards(comm::counts_by_weights(shards, weights));
}

void Training::check_start() {
  const auto device = backend::cpu_info();
  progress_.seed = job_.seed;
  progress_.shards = job_.shards;
  progress_.job_digest = job_.digest;
  progress_.job = job_.canonical;
  progress_.data_digest = data_.digest();
  progress_.fingerprint = fmt::format("{}; {}; {}", device.isa, device.libraries, version());
  const std::vector<StartFact> facts = {
      {"job", job_.digest, "give every rank the same job file and overrides"},
      {"data set", progress_.data_digest, "copy the same data to every host"},
      {"program", options_.program_digest, "install the same lockstep on every host"},
      {"libraries", progress_.fingerprint,
       "use one kind of processor and one version of the libraries, or set exact: preferred", true},
  };
  for (const auto& warning : compare_start(facts, job_.exact == "required", communicator_, timeout())) {
    emit("warning", {{"message", warning + "; the gradient is exact, but not bitwise the same"}});
  }
}

void Training::resume() {
  std::optional<CheckpointFiles> files;
  if (leads() && !job_.checkpoint.never) {
    directory_ = std::make_unique<RunDirectory>(job_.run_directory);
    std::string notes;
    best_name_ = best_checkpoint(directory_->checkpoints());
    files = find_resume(options_.resume, *directory_, job_, notes);
    if (!notes.empty()) emit("warning", {{"message", "passed over a damaged checkpoint: " + notes}});
  }
  files = broadcast_files(std::move(files), communicator_, timeout());
  if (!files) {
    initialize_from_file();
    return;
  }
  const Progress saved = parse_progress(*files);
  if (saved.data_digest != progress_.data_digest) {
    throw Error(ExitCode::data,
                fmt::format("{}: the data set is not the one that this run began with; restore it, or choose "
                            "a new run_directory",
                            files->path));
  }
  if (saved.fingerprint != progress_.fingerprint && job_.exact == "required") {
    throw Error(ExitCode::usage,
                fmt::format("{}: it was written with {}, but this is {}; the bits would differ: use the same, "
                            "or set exact: preferred",
                            files->path, saved.fingerprint, progress_.fingerprint));
  }
  restore(*files, updater_->optimizer_state_names(), model_);
  const std::string fingerprint = progress_.fingerprint;
  progress_ = saved;
  progress_.fingerprint = fingerprint;
  first_step_ = written_step_ = progress_.step;
  emit("restart", {{"step", progress_.step}, {"path", files->path}});
}

void Training::initialize_from_file() {
  if (!job_.initialize) return;
  const auto file = SafetensorsFile::read(job_.initialize->from);
  std::int64_t filled = 0;
  for (auto* block : {&model_.parameters, &model_.states}) {
    for (std::size_t i = 0; i < block->size(); ++i) {
      const auto& only = job_.initialize->only;
      if (!only.empty() && !matches_any(only, block->name(i))) continue;
      file.copy(block->name(i), block->shape(i), block->at(i));
      ++filled;
    }
  }
  if (filled == 0) {
    throw Error(ExitCode::configuration, "job.initialize.only: no parameter of the model matches these patterns");
  }
}

void Training::make_loader() {
  data::LoaderOptions options;
  options.batch = job_.batch_size;
  options.shards = static_cast<int>(job_.shards);
  options.seed = job_.seed;
  options.first_step = static_cast<std::uint64_t>(progress_.step);
  options.last_step = static_cast<std::uint64_t>(std::max(steps_, progress_.step));
  options.cache_bytes = job_.data.cache == "memory" ? job_.data.cache_bytes : 0;
  options.threads = job_.data.threads;
  options.depth = job_.data.depth;
  loader_ = std::make_unique<data::Loader>(
      *data_.train, data_.pipeline(job_, registries_.augmentations, *data_.train, true), options);
  loader_->assign(options.first_step, assignment_.shards_of_rank.at(static_cast<std::size_t>(communicator_.rank())));
  source_ = std::make_unique<LoaderSource>(*loader_, graph_);
}

TrainResult Training::run() {
  emit_start();
  loop_start_ = Clock::now();
  while (progress_.step < steps_ && !progress_.finished && !interrupted_) step();
  training_seconds_ = seconds_since(loop_start_);
  if (!interrupted_ && data_.validation && !job_.evaluate.never && progress_.metrics.empty()) evaluate();
  if (progress_.step != written_step_) write(false);

  TrainResult result;
  result.steps = progress_.step;
  result.samples = (progress_.step - first_step_) * job_.batch_size;
  result.seconds = training_seconds_;
  result.samples_per_second = training_seconds_ > 0 ? static_cast<double>(result.samples) / training_seconds_ : 0;
  result.loss = last_loss_;
  result.metrics = progress_.metrics;
  result.parameters_sha256 = exec::sha256_of(model_.parameters);
  result.interrupted = interrupted_;
  emit_end(result);
  return result;
}

void Training::step() {
  const auto number = static_cast<std::uint64_t>(progress_.step);
  const auto& shards = assignment_.shards_of_rank.at(static_cast<std::size_t>(communicator_.rank()));
  exchange_->begin_step(number, assignment_);
  const std::vector<exec::ShardScalars>* results = nullptr;
  {
    const PhaseTimer timer(phases_, "compute");
    results = &executor_->train({shards}, number, *source_, layout_, *exchange_);
  }
  StepSums sums;
  {
    const PhaseTimer timer(phases_, "exchange");
    exchange_->finish();
    sums = exchange_scalars(*results);
  }
  last_loss_ = sums.loss / sums.count;
  if (!std::isfinite(last_loss_)) {
    throw Error(
        ExitCode::diverged,
        fmt::format("step {}: the loss is {}, not a finite number; try a smaller learning rate, a longer warm-up, "
                    "or clip_norm",
                    progress_.step, std::isnan(last_loss_) ? "nan" : "infinite"));
  }
  {
    const PhaseTimer timer(phases_, "update");
    gradient_norm_ = updater_->update(model_, *exchange_, sums.count,
                                      {.learning_rate = schedule_.at(progress_.step), .step = progress_.step}, *pool_);
  }
  ++progress_.step;
  progress_.samples += job_.batch_size;
  after_step(sums);
}

Training::StepSums Training::exchange_scalars(const std::vector<exec::ShardScalars>& results) {
  const std::size_t metrics = graph_.metrics.size(), columns = 2 + 2 * metrics;
  std::vector<double> mine;
  for (const auto& shard : results) {
    mine.push_back(shard.loss);
    mine.push_back(shard.count);
    for (const auto& [value, count] : shard.metrics) {
      mine.push_back(value);
      mine.push_back(count);
    }
  }
  const auto all = exchange_->scalars(mine, static_cast<int>(columns), stop_asked() ? kStopAsked : 0);
  StepSums sums;
  sums.metrics.resize(metrics);
  for (std::size_t row = 0; row + columns <= all.values.size(); row += columns) {
    sums.loss += all.values[row];
    sums.count += all.values[row + 1];
    for (std::size_t m = 0; m < metrics; ++m) {
      sums.metrics[m].first += all.values[row + 2 + 2 * m];
      sums.metrics[m].second += all.values[row + 3 + 2 * m];
    }
  }
  sums.stop_asked = (all.flags & kStopAsked) != 0;
  return sums;
}

bool Training::stop_asked() const {
  return signals_.asked() || (options_.stop_at > 0 && progress_.step + 1 >= options_.stop_at);
}

bool Training::due(const Span& every) const {
  const std::int64_t period = std::max<std::int64_t>(1, to_steps(every, steps_per_epoch_));
  return progress_.step % period == 0 || progress_.step == steps_;
}

void Training::after_step(const StepSums& sums) {
  emit_step(sums);
  if (data_.validation && !job_.evaluate.never && due(job_.evaluate.every)) evaluate();
  interrupted_ = sums.stop_asked && progress_.step < steps_;
  const bool wanted = (!job_.checkpoint.never && due(job_.checkpoint.every)) || interrupted_;
  if (wanted && written_step_ != progress_.step) write(false);
}

void Training::evaluate() {
  const PhaseTimer timer(phases_, "evaluate");
  if (!evaluation_) {
    evaluation_ = std::make_unique<Evaluation>(
        graph_, *data_.validation, data_.pipeline(job_, registries_.augmentations, *data_.validation, false),
        communicator_, *pool_,
        EvaluationOptions{job_.batch_size / job_.shards, job_.data.cache == "memory" ? job_.data.cache_bytes / 4 : 0,
                          timeout()});
  }
  progress_.metrics = evaluation_->run(model_.parameters, model_.states, static_cast<std::uint64_t>(progress_.step));
  auto shown = progress_.metrics;
  const double loss = shown.extract("loss").mapped();
  emit("eval", {{"step", progress_.step}, {"set", std::string("validation")}, {"loss", loss}, {"metrics", shown}});
  note_best();
}

const std::string& Training::watched_metric() const {
  return job_.early_stop ? job_.early_stop->metric : job_.checkpoint.best;
}

bool Training::is_better(double value) const {
  if (!progress_.has_best) return true;
  const OpDef* metric = watched_metric() == "loss" ? nullptr : registries_.ops.find(watched_metric());
  const bool higher = metric != nullptr && metric->higher_is_better;
  return higher ? value > progress_.best_metric : value < progress_.best_metric;
}

void Training::note_best() {
  if (watched_metric().empty()) return;
  const auto found = progress_.metrics.find(watched_metric());
  if (found == progress_.metrics.end()) {
    throw Error(ExitCode::configuration,
                fmt::format("job: '{}' is watched, but it is not among the job's metrics; add it to `metrics`",
                            watched_metric()));
  }
  if (is_better(found->second)) {
    progress_.best_metric = found->second;
    progress_.has_best = true;
    progress_.evaluations_without_improvement = 0;
    if (!job_.checkpoint.best.empty() && !job_.checkpoint.never) write(true);
    return;
  }
  ++progress_.evaluations_without_improvement;
  progress_.finished = job_.early_stop && progress_.evaluations_without_improvement >= job_.early_stop->patience;
}

void Training::write(bool best) {
  written_step_ = progress_.step;
  if (!directory_) return;
  const PhaseTimer timer(phases_, "checkpoint");
  const auto start = Clock::now();
  const std::string path = directory_->checkpoint(progress_.step);
  write_checkpoint(path, progress_, model_, updater_->optimizer_state_names());
  if (best) {
    best_name_ = fmt::format("step-{:08}", progress_.step);
    write_file(directory_->checkpoints() + "/best", best_name_ + "\n");
  }
  prune_checkpoints(directory_->checkpoints(), job_.checkpoint.keep, best_name_);
  emit("checkpoint", {{"step", progress_.step}, {"path", path}, {"seconds", seconds_since(start)}});
}

}  // namespace lockstep::train
