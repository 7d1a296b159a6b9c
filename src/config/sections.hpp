// The sections of a job file, one source file each; job_section() is the root.
#pragma once

#include "config/section.hpp"
#include "lockstep/job.hpp"

namespace lockstep::config {

/// Root keys of a job file besides `job`: the Helm chart's, so that one file serves both and a typo such as `jbo:` is
/// noticed.
[[nodiscard]] const std::vector<std::string>& chart_keys();

[[nodiscard]] Is<Job> job_section(const Catalogue& catalogue);
[[nodiscard]] Is<ModelOptions> model_section(const Catalogue& catalogue);
[[nodiscard]] Is<DataOptions> data_section(const Catalogue& catalogue);
[[nodiscard]] Is<Job> losses_rule(const Catalogue& catalogue);  ///< of the whole job: sets the loss or several
/// One of these, alone or behind the name of one of several losses: "accuracy", "kind/accuracy".
[[nodiscard]] Is<std::string> metric(std::vector<std::string> metrics);
[[nodiscard]] Is<std::string> metric_or_loss(const Catalogue& catalogue);
/// Metrics have names of losses where there are several, and nothing else does not fit these.
void check_losses(const Job& job, const Scope& scope);
[[nodiscard]] Is<OptimizerOptions> optimizer_section(const Catalogue& catalogue);
[[nodiscard]] Is<LearningRateOptions> learning_rate_section(const Catalogue& catalogue);
/// Sets a peak of `auto` to the optimizer's. Throws Problems if the schedule's final rate is above it.
void choose_rate(JobFile& job, const Catalogue& catalogue);
[[nodiscard]] Is<EvaluateOptions> evaluate_section();
[[nodiscard]] Is<EarlyStopOptions> early_stop_section(const Catalogue& catalogue);
[[nodiscard]] Is<InitializeOptions> initialize_section();
[[nodiscard]] Is<CheckpointOptions> checkpoint_section(const Catalogue& catalogue);
[[nodiscard]] Is<TelemetryOptions> telemetry_section();
[[nodiscard]] Is<ParallelOptions> parallel_section();
[[nodiscard]] Is<BalanceOptions> balance_section();
[[nodiscard]] Is<Job> precision_section();  ///< a rule of the whole job: sets the precision and the loss scale

/// A kind of data source with its settings.
struct SourceFormat {
  std::string name;
  SourceKind kind;
  std::string doc;
  Is<SourceOptions> settings;
  bool is_of(const SourceOptions& source) const {
    return source.kind == kind && (kind != SourceKind::own || source.reader == name);
  }
  void choose(SourceOptions& source) const {
    source.kind = kind;
    if (kind == SourceKind::own) source.reader = name;
  }
};
/// `evaluates`: the tokens are the training set's, unless the source says otherwise.
[[nodiscard]] std::vector<SourceFormat> source_formats(const Catalogue& catalogue, bool evaluates);
[[nodiscard]] Is<SourceOptions> source_section(const Catalogue& catalogue, bool evaluates = false);
[[nodiscard]] Is<std::vector<std::string>> plugins_rule();

}  // namespace lockstep::config
