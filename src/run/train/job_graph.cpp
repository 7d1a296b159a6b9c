#include "run/train/job_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "config/config.hpp"
#include "data/input/prepared_data.hpp"
#include "graph/blocks.hpp"
#include "graph/model_graph.hpp"
#include "graph/precision.hpp"
#include "graph/sample_positions.hpp"
#include "graph/weighted_loss.hpp"
#include "lockstep/error.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"
#include "lockstep/trainer.hpp"
#include "step/optim/parameter_groups.hpp"

namespace lockstep::train {

namespace {

// Targets that a loss is not for, found before a step meets them: kernels of GPUs cannot say what they were given.

/// By how much ten probabilities may miss 1 in sum that are written with two decimals.
constexpr double kRounding = 0.05;

void require_shares(const OpDef& loss, const data::TargetRange& range) {
  const bool below = range.lowest < 0;
  if (!below && range.highest <= 1) return;
  throw Error(ExitCode::data,
              fmt::format("{}: column '{}': expected a target from 0 to 1, as {} wants it, found {:.6g}; {}",
                          below ? range.lowest_at : range.highest_at, range.column, loss.name,
                          below ? range.lowest : range.highest,
                          loss.targets == TargetKind::shares ? "for other numbers use the loss mean_squared_error"
                                                             : "divide each row by its sum"));
}

void require_sum(const std::string& loss, const data::TargetRange& range) {
  const bool below = range.lowest < 1 - kRounding;
  if (!below && range.highest <= 1 + kRounding) return;
  throw Error(ExitCode::data,
              fmt::format("{}: expected targets that add up to 1, as {} wants them, found {:.6g} in sum; divide each "
                          "row by its sum",
                          below ? range.lowest_at : range.highest_at, loss, below ? range.lowest : range.highest));
}

struct LabelledSample {
  std::int64_t label = 0;
  std::string name;  ///< empty: there is no such sample
};

/// The first sample of a class that is not 0 or 1.
LabelledSample third_class(const DataSet& set, std::size_t feature) {
  const DataSetInfo& info = set.info();
  const bool apart = !info.features[feature].classes.empty();
  for (std::size_t c = 2; !apart && c < info.class_counts.size(); ++c) {
    if (info.class_counts[c] == 0) continue;
    for (std::int64_t id = 0; id < set.size(); ++id) {
      if (set.label(id) == static_cast<std::int64_t>(c)) return {set.label(id), set.name(id)};
    }
  }
  Sample sample;
  for (std::int64_t id = 0; apart && !info.columns.empty() && id < set.size(); ++id) {  // a table, which is in memory
    set.read(id, sample);
    if (const auto label = sample[feature].tensor.as<std::int32_t>()[0]; label > 1) return {label, set.name(id)};
  }
  return {};
}

/// Which column of a table a feature of classes is; empty: there are no columns.
std::string column_of(const DataSetInfo& info, const Feature& feature, const JobFile& job) {
  if (info.columns.empty()) return "";
  return feature.classes.empty() && !job.data.train.target.empty() ? job.data.train.target.front() : feature.name;
}

void require_two_classes(const Node& loss, const std::string& target, const DataSet& set, const JobFile& job) {
  const DataSetInfo& info = set.info();
  const auto feature =
      std::find_if(info.features.begin(), info.features.end(), [&](const Feature& f) { return f.name == target; });
  if (feature == info.features.end() || feature->kind != Feature::Kind::label) return;
  const auto [label, sample] = third_class(set, feature - info.features.begin());
  if (sample.empty()) return;
  const auto& names = feature->classes.empty() ? info.class_names : feature->classes;
  const std::string column = column_of(info, *feature, job);
  throw config::Problems(
      {{job.place_of("job.loss"),
        fmt::format("expected targets of two classes, 0 and 1, as {} wants them, found class {} ('{}') in {}{}; use "
                    "the loss cross_entropy",
                    loss.op->name, label, names.at(label), sample,
                    column.empty() ? "" : fmt::format(", column '{}'", column))}});
}

/// Throws Error(data) with the row and the column of a number that is no share where the loss wants shares, or of
/// numbers that don't add up to 1 where it wants probabilities; config::Problems, with a sample, where it tells two
/// classes apart and there are more. Knows what indexing knows: numbers of tables and of CSVs, classes of all sets.
void require_targets(const Graph& graph, const JobFile& job, const input::PreparedData& data) {
  for (const Node* const loss : loss_nodes(graph)) {
    const bool shares = loss->op->targets == TargetKind::shares;
    const bool probabilities = loss->op->targets == TargetKind::probabilities;
    if (!shares && !probabilities) continue;
    const Value& target = graph.at(loss->inputs[1]);
    for (const data::TargetRange& range : data.target_ranges) {
      if (range.feature != target.name) continue;
      if (!range.column.empty()) require_shares(*loss->op, range);
      if (range.column.empty() && probabilities) require_sum(loss->op->name, range);
    }
    if (!shares || target.spec.dtype != DType::i32) continue;
    for (const auto& set : {data.train, data.validation}) {
      if (set != nullptr) require_two_classes(*loss, target.name, *set, job);
    }
  }
}

Graph in_precision(const Job& job, Graph graph) {
  set_precision(graph, precision_of(job));
  if (job.precision == Precision::tf32) allow_tf32(graph);
  return graph;
}

// With a single value the variance is 0, and the layer's output does not depend on its input.
void require_batch_statistics(const Graph& graph, const JobFile& job) {
  for (const Node& node : graph.nodes) {
    if (node.op->name != "batch_norm") continue;
    const TensorSpec& x = graph.at(node.inputs[0]).spec;
    if (x.elements() / x.shape.back() > 1) continue;
    throw config::Problems(
        {{job.place_of("job.micro_batches"),
          fmt::format("expected micro-batches of several samples, since layer '{}' normalizes over a micro-batch, "
                      "found {} "
                      "of a batch of {}, where it sees one value a channel; {}",
                      node.name, job.micro_batches == 1 ? "one" : fmt::format("{} micro-batches", job.micro_batches),
                      job.batch_size,
                      job.micro_batches == 1
                          ? "set batch_size to 2 or more"
                          : fmt::format("set micro_batches to {} or less", job.micro_batches / 2))}});
  }
}

void require_blocks(const Graph& graph, const JobFile& job) {
  if (job.recompute != Recompute::blocks || !Blocks(graph).all().empty()) return;
  throw config::Problems(
      {{job.place_of("job.recompute"),
        "expected a model with blocks, found none in this one; give layers that are to be recomputed together a "
        "`block: NAME`, or set recompute to cheap or never"}});
}

/// The features that the losses are held against.
std::vector<std::string> targets_of(const Job& job, const std::vector<Feature>& features) {
  if (job.losses.empty()) return {target_feature(job.loss.target, features)};
  std::vector<std::string> targets;
  for (const LossOptions& loss : job.losses) targets.push_back(target_feature(loss.target, features));
  return targets;
}

// The steps of augmentation draw for each image of a sample by itself; a target that is an image of its own would be
// moved to another place than what it is the target of.
void require_unmoved_target(const JobFile& job, const input::PreparedData& data, const Registries& registries) {
  const std::vector<std::string> targets = targets_of(job, data.features);
  const auto& inputs = job.model.inputs;
  const auto& source = data.schema.info.features;
  const auto found = std::find_if(source.begin(), source.end(), [&](const Feature& f) {
    return f.kind == Feature::Kind::image && std::find(targets.begin(), targets.end(), f.name) != targets.end() &&
           std::find(inputs.begin(), inputs.end(), f.name) == inputs.end();
  });
  if (found == source.end()) return;
  for (const AugmentOptions& step : job.data.augment) {
    const AugmentDef* const def = registries.augmentations.find(step.name);
    if (def != nullptr && !def->random) continue;
    throw config::Problems(
        {{job.place_of("job.data.augment"),
          fmt::format("expected no step that draws, since the target '{}' is an image, for which it would draw "
                      "something else, found '{}'; leave it out, or augment the files",
                      found->name, step.name)}});
  }
}

// Labels and tokens are checked again when they are read; here before any is, where the data set says what there is.
void require_classes(const Graph& graph, const Node& loss, const JobFile& job, const DataSetInfo& info) {
  const Value& target = graph.at(loss.inputs[1]);
  if (loss.op->targets != TargetKind::classes || target.spec.dtype != DType::i32) return;
  const std::int64_t predicted = graph.at(loss.inputs[0]).spec.shape.back();
  const auto is_ignored = [&](std::int64_t label) {
    return loss.attributes.has("ignored_index") && loss.attributes.integer("ignored_index") == label;
  };
  const auto of_target = std::find_if(info.features.begin(), info.features.end(),
                                      [&](const Feature& feature) { return feature.name == target.name; });
  const bool apart = of_target != info.features.end() && !of_target->classes.empty();  // all have samples
  const std::vector<std::string>& names = apart ? of_target->classes : info.class_names;
  const auto classes = apart ? std::ssize(names) : std::ssize(info.class_counts);
  for (std::int64_t label = classes - 1; label >= predicted; --label) {
    const std::size_t number = label;
    if ((!apart && info.class_counts[number] == 0) || is_ignored(label)) continue;
    throw config::Problems(
        {{job.place_of("job.model"),
          fmt::format("expected a prediction of {} classes or more, since the training set has samples of class {} "
                      "('{}'), found {} as the last size of the model's output; give its last layer {} features",
                      label + 1, label, names.at(number), predicted, label + 1)}});
  }
}

/// The larger of two logits is a class, but the largest of one is always the same.
void require_several_classes(const Graph& graph, const JobFile& job) {
  const auto losses = loss_nodes(graph);
  if (std::none_of(losses.begin(), losses.end(),
                   [](const Node* loss) { return loss->op->targets == TargetKind::shares; }))
    return;
  for (const std::int32_t metric : graph.metrics) {
    const Node& node = graph.nodes[metric];
    if (node.op->targets != TargetKind::classes || graph.at(node.inputs[0]).spec.shape.back() > 1) continue;
    throw config::Problems(
        {{job.place_of("job.metrics"),
          fmt::format("expected metrics of a single prediction, found '{}', which looks for the largest of several; "
                      "take binary_accuracy, f1 or auc, or cross_entropy and a prediction for each class",
                      node.op->name)}});
  }
}

void require_classes(const Graph& graph, const JobFile& job, const input::PreparedData& data) {
  for (const Node* const loss : loss_nodes(graph)) require_classes(graph, *loss, job, data.schema.info);
}

// What a weight multiplies is the gradient by its sample's own prediction.
/// A table's column of numbers is no target of a loss of classes, but it may be meant as one.
void require_categorical(const JobFile& job, const input::PreparedData& data, const OpRegistry& ops) {
  if (data.schema.info.columns.empty() || !job.losses.empty()) return;
  const std::string target = target_feature(job.loss.target, data.features);
  const bool is_number = std::any_of(data.features.begin(), data.features.end(), [&](const Feature& feature) {
    return feature.name == target && feature.kind == Feature::Kind::tensor && feature.spec.shape.empty();
  });
  if (!is_number || ops.at(job.loss.kind).targets != TargetKind::classes) return;
  const auto& columns = job.data.train.target;
  const std::string column = columns.empty() ? target : columns.front();
  throw config::Problems(
      {{job.place_of("job.loss"),
        fmt::format("expected a target of classes, as {} wants it, found numbers in column '{}'; add `categorical: "
                    "[{}]` to the table, or use the loss mean_squared_error",
                    job.loss.kind, column, column)}});
}

/// What a model of the zoo predicts by itself: the classes, one number that tells two of them apart, or the numbers of
/// the target.
std::int64_t outputs_wanted(const Job& job, const input::PreparedData& data, const OpRegistry& ops) {
  const auto is_target = [&](const Feature& feature) {
    return feature.name == target_feature(job.loss.target, data.features);
  };
  if (job.losses.empty() && ops.at(job.loss.kind).targets == TargetKind::shares) {
    const auto found = std::find_if(data.features.begin(), data.features.end(), is_target);
    if (found != data.features.end() && found->kind == Feature::Kind::label) return 1;
  }
  if (data.schema.classes() > 0 || !job.losses.empty() || ops.at(job.loss.kind).targets == TargetKind::classes) {
    return data.schema.classes();
  }
  for (const Feature& feature : data.features) {
    const bool numbers = feature.kind == Feature::Kind::tensor && feature.spec.dtype == DType::f32;
    if (numbers && is_target(feature)) return feature.spec.elements();
  }
  return data.schema.classes();
}

void require_samples_apart(const Graph& graph, const JobFile& job) {
  if (!is_weighted(graph.nodes[graph.loss])) return;
  for (const Node* const loss : loss_nodes(graph)) {
    if (!loss->op->compares_samples) continue;
    throw config::Problems(
        {{job.place_of("job.loss"),
          fmt::format("expected samples without weights, since with {} the loss of each depends on all samples of its "
                      "micro-batch, found some with; leave out the weights, or take triplet",
                      loss->op->name)}});
  }
}

void require_vocabulary(const Graph& graph, const JobFile& job, const input::PreparedData& data) {
  const std::int64_t vocabulary = data.schema.info.vocabulary;
  if (vocabulary == 256 && data.schema.info.token_text.empty()) return;  // bytes, of which some may be missing
  for (const Node& node : graph.nodes) {
    if (node.op->name != "embedding" || graph.at(node.inputs[0]).role != Role::input) continue;
    const std::int64_t rows = graph.at(node.parameters[0]).spec.shape[0];
    if (rows >= vocabulary) continue;
    throw config::Problems(
        {{job.place_of("job.model"),
          fmt::format("expected a vocabulary of {} or more in layer '{}', since the training set has so many different "
                      "tokens, found {}",
                      vocabulary, node.name, rows)}});
  }
}

// A length counts the positions that the samples have.
void require_own_positions(const Graph& graph, const JobFile& job) {
  const std::string misplaced = misplaced_lengths(graph);
  if (!misplaced.empty()) throw config::Problems({{job.place_of("job.model"), misplaced}});
}

}  // namespace

std::map<std::string, TargetScale> scales_of(const Job& job, const input::PreparedData& data, const OpRegistry& ops) {
  std::map<std::string, TargetScale> scales;
  std::map<std::string, std::string> targets;  // by layer
  if (!job.data.normalize_target) return scales;
  for (const LossOptions& loss : job.losses.empty() ? std::vector{job.loss} : job.losses) {
    const std::string target = target_feature(loss.target, data.features);
    const auto found = data.schema.targets.find(target);
    if (found == data.schema.targets.end() || !ops.at(loss.kind).activation.empty()) continue;
    if (const auto& other = targets.try_emplace(loss.output, target).first->second; other != target) {
      throw Error(
          ExitCode::configuration,
          fmt::format("job.data.normalize_target: expected a layer for each target, found '{}' and '{}' predicted "
                      "by one; give each loss an `output` of its own",
                      other, target));
    }
    TargetScale& scale = scales[loss.output] = {found->second.mean, found->second.stddev};
    for (const Feature& feature : data.features) {
      if (feature.name != target) continue;
      scale.offset = feature.offsets;
      for (std::size_t i = 0; i < scale.offset.size(); ++i) scale.mean[i] -= scale.offset[i];
    }
  }
  if (scales.empty()) {
    throw Error(ExitCode::configuration,
                "job.data.normalize_target: expected numbers to predict, and a loss of their differences such as "
                "mean_squared_error, found none; leave it out");
  }
  return scales;
}

DType precision_of(const Job& job) {
  return job.precision == Precision::bf16 ? DType::bf16 : job.precision == Precision::fp16 ? DType::f16 : DType::f32;
}

std::vector<std::string> outputs_of(const Job& job) {
  std::vector<std::string> layers;
  for (const LossOptions& loss : job.losses) {
    if (std::find(layers.begin(), layers.end(), loss.output) == layers.end()) layers.push_back(loss.output);
  }
  return layers;
}

Graph make_job_graph(const JobFile& job, const input::PreparedData& data, const Registries& registries) {
  require_categorical(job, data, registries.ops);
  Graph graph = in_precision(job, build_model_graph({.model = &job.model,
                                                     .loss = job.losses.empty() ? &job.loss : nullptr,
                                                     .losses = job.losses,
                                                     .metrics = job.metrics,
                                                     .scales = scales_of(job, data, registries.ops),
                                                     .features = data.features,
                                                     .classes = outputs_wanted(job, data, registries.ops),
                                                     .vocabulary = data.schema.info.vocabulary,
                                                     .batch = job.batch_size / job.micro_batches},
                                                    registries.ops, registries.models));
  require_batch_statistics(graph, job);
  require_classes(graph, job, data);
  require_several_classes(graph, job);
  require_targets(graph, job, data);
  require_samples_apart(graph, job);
  require_vocabulary(graph, job, data);
  require_own_positions(graph, job);
  require_blocks(graph, job);
  optim::require_matches(job.optimizer, graph);
  require_unmoved_target(job, data, registries);
  return graph;
}

Graph make_evaluation_graph(const JobFile& job, const input::PreparedData& data, const Registries& registries) {
  input::PreparedData unweighted = data;
  std::erase_if(unweighted.features, [](const Feature& feature) { return feature.kind == Feature::Kind::weight; });
  return make_job_graph(job, unweighted, registries);
}

Graph make_prediction_graph(const Job& job, const input::PreparedData& data, const Registries& registries,
                            std::int64_t batch) {
  auto features = data.features;
  const std::vector<std::string> targets = targets_of(job, features);
  const std::vector<std::string>& inputs = job.model.inputs;  // an autoencoder's target is one of them
  const auto has = [](const std::vector<std::string>& names, const Feature& feature) {
    return std::find(names.begin(), names.end(), feature.name) != names.end();
  };
  std::erase_if(features, [&](const Feature& feature) { return has(targets, feature) && !has(inputs, feature); });
  return in_precision(job, build_model_graph({.model = &job.model,
                                              .loss = nullptr,
                                              .outputs = outputs_of(job),
                                              .metrics = {},
                                              .scales = scales_of(job, data, registries.ops),
                                              .features = features,
                                              .classes = outputs_wanted(job, data, registries.ops),
                                              .vocabulary = data.schema.info.vocabulary,
                                              .batch = batch},
                                             registries.ops, registries.models));
}

}  // namespace lockstep::train
