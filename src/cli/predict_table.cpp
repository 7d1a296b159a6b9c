// Rows of a table through the columns, categories and statistics of the training set, or texts through its tokens, to
// numbers or classes.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/predict.hpp"
#include "core/say.hpp"
#include "core/words.hpp"
#include "data/input/schema.hpp"
#include "data/open.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

using Json = nlohmann::ordered_json;

void print_row_classes(const std::string& name, const SamplePrediction& row, const DataSetInfo& info,
                       const PredictOptions& options) {
  const auto order = largest(row.values, options.top);
  if (options.json) {
    Json line = {{"event", "predict"}, {"row", name}};
    for (const std::size_t i : order) {
      line["classes"].push_back({{"name", info.class_names.at(i)}, {"index", i}, {"probability", row.values[i]}});
    }
    fmt::print("{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  fmt::print("{}\n", name);
  for (const std::size_t i : order) fmt::print("  {:>8.4f}  {}\n", row.values[i], info.class_names.at(i));
}

/// `names`: of the row's values.
void print_row_values(const std::string& name, const SamplePrediction& row, const std::vector<std::string>& names,
                      const train::ModelOutput& output, bool of_windows, const PredictOptions& options) {
  if (options.json) {
    const Json line = {
        {"event", "predict"}, {"row", name}, {row.probabilities ? "probabilities" : "values", row.values}};
    fmt::print("{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  fmt::print("{}", name);
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    const bool alone = row.values.size() == 1 && !row.probabilities && !of_windows;  // the target's number
    fmt::print("  {}{}{}", alone ? "" : names[i], alone ? "" : " ", number_text(row.values[i], output.offset(i)));
  }
  fmt::print("\n");
}

/// Files as the training set's reader reads them: a table's, one of texts, or one of a plugin.
SourceOptions source_of(const std::vector<std::string>& files, const train::LoadedModel& model) {
  const SourceOptions& train = model.job().data.train;
  SourceOptions source;
  if (train.kind == SourceKind::own) {
    source.kind = SourceKind::own;
    source.reader = train.reader;
    source.attributes = train.attributes;
  } else {
    source.kind = model.data().columns.empty() ? SourceKind::texts : SourceKind::table;
  }
  source.paths = files;
  source.text_column = train.text_column;
  source.label_column = "";
  source.unknown = train.unknown;
  source.bad_samples = train.bad_samples;
  return source;
}

/// The files that it reads, in words.
std::string expected(const SourceOptions& source) {
  if (source.kind == SourceKind::own) return fmt::format("files for the reader '{}'", source.reader);
  if (source.kind == SourceKind::texts) return "texts, or CSV, Parquet or .jsonl files of such";
  return "CSV or Parquet files with the columns of the training set";
}

void warn_of(const DataSetInfo& info) {
  for (const auto& row : info.skipped) say("warning: skipped {}\n", row);
  for (const auto& warning : info.warnings) say("warning: {}\n", warning);
}

}  // namespace

void predict_table(const train::LoadedModel& model, const PredictOptions& options, const PredictSet& predict) {
  const DataSetInfo& info = model.data();
  const SourceOptions source = source_of(options.files, model);
  if (options.files.empty()) {
    throw Error(ExitCode::usage,
                fmt::format("predict: expected {}, found none; give them after the job", expected(source)));
  }
  const auto rows = data::open(source, {.like = &info, .readers = &model.prepared().registries->readers});
  if (options.print) {
    warn_of(rows->info());
    for (const auto& warning : input::far_columns(model.prepared().schema, *rows)) say("warning: {}\n", warning);
  }
  const auto predictions = predict(*rows);
  const auto names = train::value_names(model, predictions.empty() ? 0 : predictions[0].values.size());
  if (options.csv && options.print) {
    std::vector<std::string> header = {"row"};
    header.insert(header.end(), names.begin(), names.end());
    fmt::print("{}", csv_line(header));
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      std::vector<std::string> fields = {rows->name(i)};
      for (const double value : predictions[i].values) fields.push_back(fmt::format("{}", value));
      fmt::print("{}", csv_line(fields));
    }
    return;
  }
  for (std::int64_t id = 0; options.print && id < rows->size(); ++id) {
    const SamplePrediction& row = predictions[id];
    if (model.outputs().size() > 1) {
      print_outputs(model, options, "row", {rows->name(id)}, row);
    } else if (row.values.size() == info.class_names.size() && row.probabilities) {
      print_row_classes(rows->name(id), row, info, options);
    } else {
      print_row_values(rows->name(id), row, names, model.outputs().front(), info.window.rows > 0, options);
    }
  }
}

}  // namespace lockstep::cli
