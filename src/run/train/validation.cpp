#include "run/train/validation.hpp"

#include <fmt/format.h>

#include <cmath>

#include "graph/model_graph.hpp"
#include "lockstep/error.hpp"
#include "run/train/agreed_algorithms.hpp"

namespace lockstep::train {

namespace {

bool is_better(double value, double than, double min_delta, bool higher) {
  return higher ? value > than + min_delta : value < than - min_delta;
}

}  // namespace

Validation::Validation(const RunContext& run, const input::PreparedData& data, const Graph& graph,
                       const ModelParts& parts, const optim::LearningRate& learning_rate, exec::WorkerPool& pool,
                       bool lowered)
    : run_(run),
      data_(data),
      graph_(graph),
      parts_(parts),
      learning_rate_(learning_rate),
      pool_(pool),
      lowered_(lowered) {}

bool Validation::wanted() const {
  return data_.validation && !run_.job.evaluate.never;
}

std::optional<bool> Validation::run(const exec::ModelValues& model, const Balancing& balancing,
                                    checkpoint::Progress& progress, const comm::StopPoll& stop) {
  const Job& job = run_.job;
  if (!evaluation_) {
    evaluation_ = std::make_unique<Evaluation>(
        graph_, *data_.validation, data_.pipeline(*data_.validation, false), run_.communicator, run_.device, pool_,
        EvaluationOptions{.micro_batch_samples = job.batch_size / job.micro_batches,
                          .cache_bytes = job.data.cache == SampleCache::memory ? job.data.cache_bytes / 4 : 0,
                          .timeout = run_.timeout(),
                          .filler = filler_,
                          .alike = computes_alike(job, run_.device),
                          .lowered = lowered_,
                          .keeps_weights = !divides_parameters(job.parallel.sharding),
                          .parts = parts_.is_cut() ? &parts_ : nullptr,
                          .workers = balancing.workers_of_ranks()});
  }
  evaluation_->use_counts(
      balancing.evaluation_counts(evaluation_->micro_batches(), evaluation_->counts(), progress.step));
  auto metrics = evaluation_->run_unless_stopped(model, progress.step, stop);
  if (!metrics) return std::nullopt;
  progress.metrics = std::move(*metrics);
  auto shown = progress.metrics;
  const double loss = shown.extract("loss").mapped();
  if (std::isnan(loss)) {
    run_.warn("the validation loss is nan, so no metric is a number; `lockstep eval` names the first such sample");
  }
  run_.emit(events::Evaluation{.step = progress.step, .set = "validation", .loss = loss, .metrics = std::move(shown)});
  if (job.early_stop) {
    const bool improved = note(job.early_stop->metric, job.early_stop->min_delta, progress, progress.stop_best);
    progress.evaluations_without_improvement = improved ? 0 : progress.evaluations_without_improvement + 1;
    if (progress.evaluations_without_improvement >= job.early_stop->patience) progress.finished = true;
  }
  if (learning_rate_.follows_evaluation(progress.step)) {
    const bool improved = note(learning_rate_.metric(), learning_rate_.min_delta(), progress, progress.schedule_best);
    learning_rate_.evaluated(improved, progress.schedule_memory);
  }
  return !job.checkpoint.never && !job.checkpoint.best.empty() && note(job.checkpoint.best, 0, progress, progress.best);
}

std::vector<std::string> Validation::never_measured(const checkpoint::Progress& progress) const {
  const Job& job = run_.job;
  std::vector<std::string> warnings;
  const auto judge = [&](const std::string& metric, const checkpoint::BestValue& best, const char* key,
                         const char* effect) {
    if (progress.metrics.empty() || metric.empty() || best.metric == metric) return;
    warnings.push_back(
        fmt::format("no evaluation gave a finite {}, which {} names, so {}; name another metric", metric, key, effect));
  };
  if (!job.checkpoint.never)
    judge(job.checkpoint.best, progress.best, "checkpoint.best", "there is no best checkpoint");
  if (job.early_stop) {
    judge(job.early_stop->metric, progress.stop_best, "early_stop", "every evaluation counted as no improvement");
  }
  if (learning_rate_.follows_evaluation(progress.step)) {
    judge(learning_rate_.metric(), progress.schedule_best, "the learning rate's schedule",
          "every evaluation counted as no improvement");
  }
  return warnings;
}

bool Validation::note(const std::string& metric, double min_delta, const checkpoint::Progress& progress,
                      checkpoint::BestValue& best) const {
  const auto found = progress.metrics.find(metric);
  if (found == progress.metrics.end()) {
    throw Error(
        ExitCode::configuration,
        fmt::format("job: '{}' is watched, but it is not among the job's metrics; add it to `metrics`", metric));
  }
  const bool higher = higher_is_better(run_.registries.ops, metric);
  const bool first = best.metric != metric;  // also true if a resumed job watches another metric
  if (!std::isfinite(found->second) || (!first && !is_better(found->second, best.value, min_delta, higher)))
    return false;
  best = {metric, found->second};
  return true;
}

}  // namespace lockstep::train
