#include "train/validation.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::train {

Validation::Validation(const RunContext& run, const PreparedData& data, const Graph& graph, exec::WorkerPool& pool)
    : run_(run), data_(data), graph_(graph), pool_(pool) {}

bool Validation::wanted() const {
  return data_.validation && !run_.job.evaluate.never;
}

bool Validation::run(const Model& model, Progress& progress) {
  const Job& job = run_.job;
  if (!evaluation_) {
    evaluation_ = std::make_unique<Evaluation>(
        graph_, *data_.validation, data_.pipeline(job, run_.registries.augmentations, *data_.validation, false),
        run_.communicator, pool_,
        EvaluationOptions{job.batch_size / job.shards, job.data.cache == "memory" ? job.data.cache_bytes / 4 : 0,
                          run_.timeout()});
  }
  progress.metrics = evaluation_->run(model.parameters, model.states, static_cast<std::uint64_t>(progress.step));
  auto shown = progress.metrics;
  const double loss = shown.extract("loss").mapped();
  run_.emit("eval", {{"step", progress.step}, {"set", std::string("validation")}, {"loss", loss}, {"metrics", shown}});
  return note_best(progress);
}

const std::string& Validation::watched_metric() const {
  return run_.job.early_stop ? run_.job.early_stop->metric : run_.job.checkpoint.best;
}

bool Validation::is_better(double value, const Progress& progress) const {
  if (!progress.has_best) return true;
  const OpDef* metric = watched_metric() == "loss" ? nullptr : run_.registries.ops.find(watched_metric());
  const bool higher = metric != nullptr && metric->higher_is_better;
  return higher ? value > progress.best_metric : value < progress.best_metric;
}

bool Validation::note_best(Progress& progress) const {
  if (watched_metric().empty()) return false;
  const auto found = progress.metrics.find(watched_metric());
  if (found == progress.metrics.end()) {
    throw Error(ExitCode::configuration,
                fmt::format("job: '{}' is watched, but it is not among the job's metrics; add it to `metrics`",
                            watched_metric()));
  }
  if (is_better(found->second, progress)) {
    progress.best_metric = found->second;
    progress.has_best = true;
    progress.evaluations_without_improvement = 0;
    return true;
  }
  ++progress.evaluations_without_improvement;
  const auto& early_stop = run_.job.early_stop;
  progress.finished = early_stop && progress.evaluations_without_improvement >= early_stop->patience;
  return false;
}

}  // namespace lockstep::train
