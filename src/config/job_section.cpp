// job: the root of the declarations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "config/attribute_rules.hpp"
#include "config/list_rules.hpp"
#include "config/micro_batches.hpp"
#include "config/scalar_rules.hpp"
#include "config/sections.hpp"

namespace lockstep::config {
namespace {

void check_micro_batches(const Job& job, const Scope& scope) {
  if (job.micro_batches == 0 || job.batch_size % job.micro_batches == 0) return;
  const bool batch_was_overridden =
      scope.written("batch_size") && scope.cursor().node().find("batch_size")->value.mark.command_line;
  const auto near = near_divisors(job.batch_size, job.micro_batches);
  scope.problem(batch_was_overridden && !scope.cursor().node().find("micro_batches")->value.mark.command_line
                    ? "batch_size"
                    : "micro_batches",
                fmt::format("expected micro-batches that divide batch_size, found {} micro-batches and a batch of {}; "
                            "try {} micro-batches",
                            job.micro_batches, job.batch_size, fmt::join(near, " or ")));
}

void check_metric(const Job& job, const Scope& scope, const std::string& key, const std::string& metric) {
  if (metric.empty()) return;
  const auto metrics = job.reported();
  if (metric != "loss" && std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) {
    scope.problem(key, fmt::format("expected a metric that the job computes, found '{}'; add it to metrics", metric));
  }
  const DataOptions& data = job.data;
  if (!data.has_validation()) {
    scope.problem(key, fmt::format("expected data.validation, by which '{}' is judged, found none", metric));
  } else if (job.evaluate.never) {
    scope.problem(key, fmt::format("expected evaluations, by which '{}' is judged, found 'evaluate: never'", metric));
  }
}

void check_restored(const Job& job, const Scope& scope) {
  if (!job.early_stop || !job.early_stop->restore_best) return;
  const std::string& metric = job.early_stop->metric;
  const std::string best = job.checkpoint.never ? "" : job.checkpoint.best;
  if (best == metric) return;
  scope.problem("early_stop.restore_best",
                fmt::format("expected a checkpoint of the best evaluation by '{0}', found {1}; add checkpoint: "
                            "{{best: {0}}}",
                            metric, best.empty() ? "none" : "checkpoint.best: " + best));
}

/// Of masked text most targets are a number that stands for none, which only a loss that is told so leaves out.
void check_masked(const Job& job, const Scope& scope) {
  const DataOptions& data = job.data;
  const bool masked = data.train.masked > 0;
  for (const auto& [key, set] : {std::pair{"data.validation", &data.validation}, {"data.test", &data.test}}) {
    if (!*set || ((*set)->masked > 0) == masked) continue;
    scope.problem(
        key, fmt::format("expected masked in all sets or in none, found it in {} only", masked ? "data.train" : key));
  }
  const auto ignores = [](const LossOptions& loss) {
    return loss.attributes.has("ignored_index") && loss.attributes.integer("ignored_index") == -100;
  };
  if (!masked || (job.losses.empty() && ignores(job.loss))) return;
  if (std::any_of(job.losses.begin(), job.losses.end(), ignores)) return;
  scope.problem("loss",
                "expected {cross_entropy: {ignored_index: -100}}, since the training text is masked, and the target of "
                "what is not hidden is -100");
}

/// Digits are numbered: two sets with overlapping ranges share samples.
void check_digits(const Job& job, const Scope& scope) {
  const SourceOptions& train = job.data.train;
  const SourceOptions* validation = job.data.validation ? &*job.data.validation : nullptr;
  if (validation == nullptr || train.kind != SourceKind::digits || validation->kind != SourceKind::digits) return;
  if (validation->first >= train.first + train.count || train.first >= validation->first + validation->count) return;
  scope.problem("data.validation.digits",
                fmt::format("expected digits that are not trained on, found {} to {} in both sets; set first to {}",
                            std::max(train.first, validation->first),
                            std::min(train.first + train.count, validation->first + validation->count) - 1,
                            train.first + train.count));
}

void check_tf32(const Job& job, const Scope& scope) {
  if (job.precision != Precision::tf32 || job.device == DeviceChoice::cuda) return;
  scope.problem("precision",
                fmt::format("expected device: cuda, since only GPUs compute in tf32, found device: {}; set "
                            "precision: fp32, or bf16",
                            name_of(job.device)));
}

void check_devices(const Job& job, const Scope& scope) {
  if (job.devices.empty() || job.device == DeviceChoice::cuda) return;
  scope.problem("devices", fmt::format("expected device: cuda, whose GPUs these are, found device: {}; leave out "
                                       "devices",
                                       name_of(job.device)));
}

void check_cache(const Job& job, const Scope& scope) {
  if (job.data.cache != SampleCache::device || job.device == DeviceChoice::cuda) return;
  scope.problem("data.cache", fmt::format("expected device: cuda, on whose GPUs samples are to be kept, found device: "
                                          "{}; set data.cache: memory",
                                          name_of(job.device)));
}

void check_optimizer(const Job& job, const Scope& scope, const std::vector<NamedAttributes>& optimizers) {
  if (job.device != DeviceChoice::cuda) return;
  for (const NamedAttributes& optimizer : optimizers) {
    if (optimizer.name != job.optimizer.kind || optimizer.on_gpus) continue;
    scope.problem("optimizer",
                  fmt::format("expected an optimizer that GPUs can compute, since device is cuda, found '{}'; set "
                              "device: cpu",
                              optimizer.name));
  }
}

bool is_cut(const ParallelOptions& parallel) {
  return parallel.parts > 1 || !parallel.cuts.empty() || parallel.branches;
}

/// Parts are given either by `parallel` or by the layers, not by both.
void check_parts(const Job& job, const Scope& scope) {
  const auto& layers = job.model.layers;
  const auto named = std::find_if(layers.begin(), layers.end(), [](const auto& layer) { return !layer.part.empty(); });
  if (named == layers.end() && !is_cut(job.parallel)) return;
  if (named != layers.end() && is_cut(job.parallel)) {
    scope.problem(
        "parallel.parts",
        fmt::format("expected parts here or at the layers, found both, as '{}' of model.layers[{}]; remove one",
                    named->part, named - layers.begin()));
  }
  if (job.data.cache != SampleCache::device) return;
  scope.problem("data.cache",
                "expected memory or none, since hosts make the inputs of a model that is in parts, found device; set "
                "data.cache: memory, or leave out the parts");
}

/// Sharding needs exact sums: with others, a gradient's slices have no owners.
void check_sharding(const Job& job, const Scope& scope) {
  if (job.parallel.sharding == Sharding::none) return;
  const auto found = name_of(job.parallel.sharding);
  if (job.exact == Exactness::never) {
    scope.problem("parallel.sharding", fmt::format("expected none, since exact: never has no owners of a gradient's "
                                                   "slices, found {}; set exact: required, or none",
                                                   found));
  }
}

void add_learning(Section<Job>& section, const Catalogue& catalogue) {
  section.field("batch_size", &Job::batch_size, number().at_least(1), "samples per optimizer step, over all ranks")
      .field("micro_batches", &Job::micro_batches, number().at_least(1).word("auto", 0),
             "equal cuts of the batch, the most ranks; auto: the largest divisor of batch_size up to 32 that leaves 8 "
             "samples, 16 with batch norm, or 1 window of text")
      .field("epochs", &Job::epochs, number().above(0), "length of training in epochs")
      .alternative([](Job& job) { job.steps = 0; }, [](const Job& job) { return job.steps == 0; })
      .field("steps", &Job::steps, number().at_least(1), "length of training in optimizer steps")
      .alternative([](Job& job) { job.epochs = 0; }, [](const Job& job) { return job.steps != 0; })
      .part("loss", losses_rule(catalogue), "of a list, the weighted sum")
      .field("metrics", &Job::metrics,
             list_of<std::string>(metric(catalogue.metrics), {.least = 0, .single = true, .unique = true}),
             "of evaluations, beside the loss")
      .field("optimizer", &Job::optimizer, optimizer_section(catalogue), "optimizer")
      .field("learning_rate", &Job::learning_rate, learning_rate_section(catalogue), "a constant or a schedule")
      .field("clip_norm", &Job::clip_norm, number().above(0).word("never", 0), "maximum global gradient norm");
}

void add_execution(Section<Job>& section) {
  section
      .part("precision", precision_section(),
            "of activations and factors of matrix products; parameters, gradients and sums stay float32. tf32 (GPUs): "
            "all is float32, but libraries may round factors to 10 bits of fraction")
      .field("device", &Job::device, choice<DeviceChoice>(), "auto: the CPU in this version")
      .field(
          "devices", &Job::devices, list_of<std::int64_t>(number().at_least(0), {.least = 0, .unique = true}),
          "with device: cuda, the GPUs of a host's ranks, numbered by PCI bus within CUDA_VISIBLE_DEVICES; empty: all")
      .field("recompute", &Job::recompute, choice<Recompute>(),
             "activations recomputed in backward, to save memory. cheap: those of norms; blocks: all but the inputs of "
             "blocks (activation checkpointing)")
      .field("cuda_graphs", &Job::cuda_graphs, boolean(), "with device: cuda, launch kernels as graphs, one per bucket")
      .field("threads", &Job::threads, number().at_least(1).at_most(4096).word("auto", 0),
             "workers of a rank, each computing whole micro-batches: CPU threads or GPU streams; auto: the available "
             "cores, or 2")
      .field("exact", &Job::exact, choice<Exactness>(),
             "required: refuse what makes the result depend on the ranks; preferred: warn; never: plain all-reduce")
      .field("balance", &Job::balance, balance_section(),
             "micro-batches per rank; auto: by measured speed (equal with exact: never)")
      .field("parallel", &Job::parallel, parallel_section(), "how the model is divided")
      .field("timeout", &Job::timeout_seconds, number().above(0), "seconds a rank waits for another")
      .field("bucket_bytes", &Job::bucket_bytes, bytes(), "gradients reduced together");
}

void add_running(Section<Job>& section, const Catalogue& catalogue) {
  section.field("evaluate", &Job::evaluate, evaluate_section(), "when to evaluate on data.validation")
      .field("early_stop", &Job::early_stop, optional_of(early_stop_section(catalogue)), "end when nothing improves")
      .field("initialize", &Job::initialize, optional_of(initialize_section()),
             "start from given parameters (fine-tuning)")
      .field("run_directory", &Job::run_directory, text(), "for checkpoints and logs; default: runs/<name>")
      .field("checkpoint", &Job::checkpoint, checkpoint_section(catalogue), "when to save the run's state")
      .field("telemetry", &Job::telemetry, telemetry_section(), "metrics and TensorBoard");
}

void set_defaults(Job& job, const Catalogue& catalogue) {
  job.name.clear();  // the default comes from the file's name
  job.batch_size = 64;
  const auto set = [](const std::vector<NamedAttributes>& entries, const std::string& name, Attributes& attributes) {
    for (const auto& entry : entries) {
      if (entry.name == name) set_defaults(entry, attributes);
    }
  };
  set(catalogue.losses, job.loss.kind, job.loss.attributes);
  set(catalogue.optimizers, job.optimizer.kind, job.optimizer.attributes);
  set(catalogue.schedules, job.learning_rate.schedule.kind, job.learning_rate.schedule.attributes);
}

}  // namespace

const std::vector<std::string>& chart_keys() {
  static const std::vector<std::string> keys{
      "cluster",      "image",       "imagePullSecrets", "groups",        "resources",        "queue",
      "persistence",  "data",        "network",          "observability", "security",         "mode",
      "nodeSelector", "tolerations", "affinity",         "nameOverride",  "fullnameOverride", "global"};
  return keys;
}

Is<Job> job_section(const Catalogue& catalogue) {
  Section<Job> section;
  section.initially([catalogue](Job& job) { set_defaults(job, catalogue); })
      .field("name", &Job::name, text(), "default: the file's name")
      .field("plugins", &Job::plugins, plugins_rule(),
             "shared libraries with your own ops, losses, metrics, readers and so on: programs, run by every command "
             "that reads the job")
      .written_if([](const Job& job) { return !job.plugins.empty(); })
      .field("seed", &Job::seed, number().at_least(0), "of everything random")
      .field("model", &Job::model, model_section(catalogue), "the network")
      .required()
      .field("data", &Job::data, data_section(catalogue), "samples and their processing")
      .required();
  add_learning(section, catalogue);
  add_execution(section);
  add_running(section, catalogue);
  return section.called("a map")
      .check({"batch_size", "micro_batches"}, check_micro_batches)
      .check({"data"}, check_digits)
      .check({"data", "loss"}, check_masked)
      .check({"data", "loss", "metrics"}, check_losses)
      .check({"device", "devices"}, check_devices)
      .check({"device", "precision"}, check_tf32)
      .check({"device", "data"}, check_cache)
      .check({"device", "optimizer"},
             [optimizers = catalogue.optimizers](const Job& job, const Scope& scope) {
               check_optimizer(job, scope, optimizers);
             })
      .check({"device", "model", "parallel"}, check_parts)
      .check({"exact", "parallel"}, check_sharding)
      .check({"early_stop", "checkpoint"}, check_restored)
      .check({"metrics", "early_stop", "data", "evaluate"},
             [](const Job& job, const Scope& scope) {
               if (job.early_stop) check_metric(job, scope, "early_stop.metric", job.early_stop->metric);
             })
      .check({"metrics", "learning_rate", "data", "evaluate"},
             [](const Job& job, const Scope& scope) {
               const Attributes& schedule = job.learning_rate.schedule.attributes;
               if (schedule.has("metric")) check_metric(job, scope, "learning_rate.schedule", schedule.text("metric"));
             })
      .check({"metrics", "checkpoint", "data", "evaluate"}, [](const Job& job, const Scope& scope) {
        if (!job.checkpoint.never) check_metric(job, scope, "checkpoint.best", job.checkpoint.best);
      });
}

}  // namespace lockstep::config
