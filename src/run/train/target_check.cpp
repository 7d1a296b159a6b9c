#include "run/train/target_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "config/config.hpp"
#include "graph/model_graph.hpp"
#include "lockstep/error.hpp"
#include "lockstep/op.hpp"

namespace lockstep::train {

namespace {

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

}  // namespace

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

}  // namespace lockstep::train
