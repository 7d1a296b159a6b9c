// From image files, through the job's own preparation and normalization, to the likeliest classes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/predict.hpp"
#include "core/files.hpp"
#include "core/say.hpp"
#include "core/words.hpp"
#include "data/augment.hpp"
#include "data/image_file.hpp"
#include "data/input/prepared_data.hpp"
#include "data/readers/csv_table.hpp"
#include "data/readers/table_columns.hpp"
#include "data/readers/table_text.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

/// The files of one sample, in the order of the features.
using SampleFiles = std::vector<std::string>;

void add_lines(const std::string& path, const std::vector<std::string>& features, std::vector<SampleFiles>& samples) {
  const auto text = read_whole_file(path);
  if (!text) throw Error(ExitCode::data, fmt::format("{}: cannot open; expected lines of JSON", path));
  const auto folder = std::filesystem::path(path).parent_path();
  std::int64_t number = 0;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    const std::string line = text->substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    SampleFiles sample;
    for (const auto& feature : features) {
      if (!json.is_object() || !json.contains(feature) || !json[feature].is_string()) {
        throw Error(ExitCode::data, fmt::format("{}:{}: expected an object with a file \"{}\", found {}", path, number,
                                                feature, line.substr(0, 60)));
      }
      sample.push_back((folder / json[feature].get<std::string>()).string());
    }
    samples.push_back(std::move(sample));
  }
}

void add_rows(const std::string& path, const std::vector<std::string>& features, std::vector<SampleFiles>& samples) {
  const data::TableFile file = data::read_table(path, data::make_byte_counter());
  for (const auto& warning : file.warnings) say("warning: {}\n", warning);
  std::vector<std::size_t> columns;
  for (const auto& feature : features) columns.push_back(data::readable_column(file, feature));
  const auto folder = std::filesystem::path(path).parent_path();
  for (const data::CsvRow& row : file.rows) {
    if (!row.fault.empty()) throw Error(ExitCode::data, fmt::format("{}:{}: {}", path, row.line, row.fault));
    SampleFiles sample;
    for (const std::size_t column : columns) sample.push_back((folder / row.fields[column]).string());
    samples.push_back(std::move(sample));
  }
}

/// Plain files are taken in the order given, `features` of them for each sample. A .csv file has a header with a column
/// for each feature, and each row names the files of one sample, relative to the CSV file's folder; other columns (a
/// label) are ignored. A .jsonl file has an object with such entries in each line. Throws Error(usage) if the number of
/// files is not a multiple of the number of features, Error(data) if a CSV file lacks a column.
std::vector<SampleFiles> sample_files(const std::vector<std::string>& files, const std::vector<std::string>& features) {
  std::vector<SampleFiles> samples;
  SampleFiles sample;
  for (const auto& file : files) {
    const std::string ending = data::kind_of_ending(file);
    if (ending == ".csv" || ending == ".tsv") {
      add_rows(file, features, samples);
      continue;
    }
    if (file.ends_with(".jsonl")) {
      add_lines(file, features, samples);
      continue;
    }
    sample.push_back(file);
    if (sample.size() < features.size()) continue;
    samples.push_back(sample);
    sample.clear();
  }
  if (samples.empty() || !sample.empty()) {
    throw Error(ExitCode::usage, fmt::format("predict: expected image files, {} for each sample ({}), or a CSV file, "
                                             "found {}; give them after the job",
                                             features.size(), fmt::join(features, ", "), files.size()));
  }
  return samples;
}

std::vector<std::string> names_of(const std::vector<Feature>& features) {
  std::vector<std::string> names;
  for (const Feature& feature : features) names.push_back(feature.name);
  return names;
}

/// What the job makes of an image of this shape before the network sees it.
Shape prepared_shape(const input::PreparedData& data, const Feature& feature, const Shape& image) {
  Feature of_image = feature;
  of_image.spec.shape = image;
  return data::Pipeline({of_image}, {.steps = data.prepare}, data.registries->augmentations).outputs()[0].spec.shape;
}

std::string bytes_of(const std::string& path) {
  auto bytes = read_whole_file(path);
  if (!bytes) throw Error(ExitCode::data, fmt::format("{}: cannot open; expected a JPEG or PNG file", path));
  return std::move(*bytes);
}

/// Overwrites `turned`.
Tensor decode(const std::string& path, const std::string& bytes, const Feature& feature,
              const input::PreparedData& data, bool& turned) {
  Tensor image;
  try {
    const auto file = std::as_bytes(std::span(bytes));
    data::decode_image(file, feature.spec.shape.at(2), image);
    turned = data::image_header(file).turned;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
  const Shape& wanted = feature.spec.shape;
  if (wanted[0] > 0 && wanted[1] > 0 && image.shape() != wanted &&
      prepared_shape(data, feature, image.shape()) != prepared_shape(data, feature, wanted)) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected an image of {}, as in the training data, found {}; resize it first", path,
                            to_string(wanted), to_string(image.shape())));
  }
  return image;
}

/// Decodes the files of a sample when it is read.
class ImageFiles final : public DataSet {
 public:
  ImageFiles(const std::vector<std::string>& files, const train::LoadedModel& model, int ranks)
      : data_(model.prepared()) {
    info_.features = model.inputs();
    files_ = sample_files(files, names_of(info_.features));
    turned_ = std::vector<std::atomic<bool>>(files_.size() * info_.features.size());
    for (const SampleFiles& sample : files_) {
      for (const std::string& file : sample) hold_pipe(file, ranks);
    }
  }
  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return files_.size(); }
  const std::vector<SampleFiles>& files() const { return files_; }
  const SampleFiles& files_of(std::size_t sample) const { return files_[sample]; }
  void read(std::int64_t id, Sample& out) const override {
    out.clear();
    for (std::size_t i = 0; i < info_.features.size(); ++i) {
      const Feature& feature = info_.features[i];
      const std::string& path = files_[id][i];
      const auto held = held_.find(path);
      bool turned = false;
      out.push_back(
          {feature.name, decode(path, held == held_.end() ? bytes_of(path) : held->second, feature, data_, turned)});
      if (turned) turned_[id * info_.features.size() + i] = true;
    }
  }
  /// What indexing warns of in a training set, of the files that any rank has read. Collective.
  std::string warning(Communicator& communicator) const {
    const std::vector<std::uint8_t> own(turned_.begin(), turned_.end());
    std::vector<std::uint8_t> all(own.size() * communicator.size());
    communicator.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)),
                            {"orientations of images"});
    std::size_t turned = 0;
    for (std::size_t i = 0; i < own.size(); ++i) {
      bool is_turned = false;
      for (std::size_t at = i; at < all.size(); at += own.size()) is_turned = is_turned || all[at] != 0;
      turned += is_turned ? 1 : 0;
    }
    return data::orientation_warning(turned, own.size());
  }

 private:
  /// It can be read once only, and several models may ask for it.
  void hold_pipe(const std::string& path, int ranks) {
    std::error_code no_such_file;
    if (!std::filesystem::is_fifo(path, no_such_file) || held_.contains(path)) return;
    if (ranks > 1) {
      throw Error(ExitCode::usage,
                  fmt::format("{}: expected a file, found a pipe, which only one of {} ranks can read; "
                              "leave out --ranks",
                              path, ranks));
    }
    held_[path] = bytes_of(path);
  }

  const input::PreparedData& data_;
  DataSetInfo info_;
  std::vector<SampleFiles> files_;                 // by sample
  std::map<std::string, std::string> held_;        // of pipes
  mutable std::vector<std::atomic<bool>> turned_;  // by file; threads read samples
};

void require_images(const train::LoadedModel& model, const PredictOptions& options) {
  for (const Feature& input : model.inputs()) {
    if (input.kind == Feature::Kind::image) continue;
    throw Error(ExitCode::usage, fmt::format("predict: the model reads '{}', which is not an image; only images and "
                                             "text are supported",
                                             input.name));
  }
  if (!options.to.empty() || model.outputs().size() > 1) return;
  if (model.prediction_shape().size() > 1) {
    throw Error(ExitCode::usage, fmt::format("predict: expected a model that predicts classes or numbers, found one "
                                             "that predicts {} for each sample; for images give a folder to write them "
                                             "to, --to FOLDER",
                                             to_string(model.prediction_shape())));
  }
}

std::string class_name(const DataSetInfo& info, std::size_t index) {
  return index < info.class_names.size() ? info.class_names[index] : fmt::format("{}", index);
}

/// Of a model that predicts numbers: all of them, in their order. One that tells two classes apart is the second's.
void print_numbers(const train::LoadedModel& model, const PredictOptions& options,
                   const std::vector<std::string>& files, const SamplePrediction& prediction) {
  const auto& values = prediction.values;
  const bool alone = values.size() == 1 && model.data().class_names.empty();
  if (options.json) {
    const nlohmann::ordered_json line = {
        {"event", "predict"}, {"files", files}, {prediction.probabilities ? "probabilities" : "values", values}};
    fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  const auto names = train::value_names(model, values.size());
  fmt::print("{}", fmt::join(files, "\n"));
  for (std::size_t i = 0; i < values.size(); ++i) {
    fmt::print("  {}{}", alone ? "" : names[i] + " ", number_text(values[i], model.outputs().front().offset(i)));
  }
  fmt::print("\n");
}

void print_sample(const train::LoadedModel& model, const PredictOptions& options, const std::vector<std::string>& files,
                  const SamplePrediction& prediction) {
  const DataSetInfo& info = model.data();
  const auto& scores = prediction.values;
  const bool tells_two_apart = scores.size() == 1 && info.class_names.size() > 1;
  if (tells_two_apart || (!prediction.probabilities && info.class_names.empty())) {
    return print_numbers(model, options, files, prediction);
  }
  const auto order = largest(scores, options.top);
  if (options.json) {
    nlohmann::ordered_json line = {{"event", "predict"}, {"files", files}};
    for (const std::size_t i : order) {
      line["classes"].push_back({{"name", class_name(info, i)},
                                 {"index", i},
                                 {prediction.probabilities ? "probability" : "value", scores[i]}});
    }
    fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  for (const auto& file : files) fmt::print("{}\n", file);
  for (const std::size_t i : order) fmt::print("  {:>8.4f}  {}\n", scores[i], class_name(info, i));
}

void print_images_csv(const train::LoadedModel& model, const ImageFiles& samples,
                      const std::vector<SamplePrediction>& predictions) {
  auto header = names_of(model.inputs());
  const auto values = train::value_names(model, predictions.empty() ? 0 : predictions[0].values.size());
  header.insert(header.end(), values.begin(), values.end());
  fmt::print("{}", csv_line(header));
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    auto fields = samples.files_of(i);
    for (const double value : predictions[i].values) fields.push_back(fmt::format("{}", value));
    fmt::print("{}", csv_line(fields));
  }
}

}  // namespace

void predict_images(const train::LoadedModel& model, const PredictOptions& options, const PredictSet& predict,
                    Communicator& communicator) {
  require_images(model, options);
  const ImageFiles samples(options.files, model, communicator.size());
  const auto predictions = predict(samples);
  const std::string warning = samples.warning(communicator);
  if (options.print && !warning.empty()) say("warning: {}\n", warning);
  if (!options.to.empty()) {
    if (options.print) write_pictures(model, options.to, samples.files(), predictions);
    return;
  }
  if (options.csv && options.print) return print_images_csv(model, samples, predictions);
  for (std::size_t i = 0; options.print && i < predictions.size(); ++i) {
    if (model.outputs().size() > 1) {
      print_outputs(model, options, "files", samples.files_of(i), predictions[i]);
      continue;
    }
    print_sample(model, options, samples.files_of(i), predictions[i]);
  }
}

}  // namespace lockstep::cli
