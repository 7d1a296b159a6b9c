// Image files through the job's own preparation and normalisation, to the likeliest classes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/predict.hpp"
#include "cli/sample_files.hpp"
#include "core/whole_file.hpp"
#include "data/readers/image_file.hpp"
#include "device/threads.hpp"
#include "exec/executor.hpp"
#include "exec/thread_counts.hpp"
#include "lockstep/error.hpp"
#include "train/job_graph.hpp"

namespace lockstep::cli {

namespace {

std::vector<std::string> names_of(const std::vector<Feature>& features) {
  std::vector<std::string> names;
  for (const Feature& feature : features) names.push_back(feature.name);
  return names;
}

std::vector<Feature> image_features(const DataSetInfo& info) {
  std::vector<Feature> images;
  for (const Feature& feature : info.features) {
    if (feature.kind == Feature::Kind::image) images.push_back(feature);
  }
  return images;
}

Tensor decode(const std::string& path, const Feature& feature) {
  const auto bytes = read_whole_file(path);
  if (!bytes) throw Error(ExitCode::data, fmt::format("{}: cannot open; expected a JPEG or PNG file", path));
  Tensor image;
  try {
    data::decode_image(std::as_bytes(std::span(*bytes)), feature.spec.shape.at(2), image);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
  const Shape& wanted = feature.spec.shape;
  if (wanted[0] > 0 && wanted[1] > 0 && image.shape() != wanted) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected an image of {}, as the training data have, found {}; scale it first", path,
                            to_string(wanted), to_string(image.shape())));
  }
  return image;
}

/// One "shard" per sample: the files of a sample, decoded and prepared on the worker that asks.
class FileSource final : public exec::InputSource {
 public:
  FileSource(const PredictContext& context, const Graph& graph)
      : images_(image_features(context.data.train->info())),
        files_(sample_files(context.options.files, names_of(images_))),
        pipeline_(make_pipeline(context)) {
    for (const ValueId id : graph.inputs) {
      const auto& outputs = pipeline_.outputs();
      const auto found = std::find_if(outputs.begin(), outputs.end(),
                                      [&](const Feature& feature) { return feature.name == graph.at(id).name; });
      if (found == outputs.end()) {
        throw Error(ExitCode::usage,
                    fmt::format("predict: the model reads '{}', which is no image; only images and text "
                                "can be given",
                                graph.at(id).name));
      }
      feature_of_.push_back(static_cast<std::size_t>(found - outputs.begin()));
    }
    buffers_.resize(files_.size());
  }

  [[nodiscard]] std::size_t samples() const { return files_.size(); }
  [[nodiscard]] const SampleFiles& files_of(std::size_t sample) const { return files_[sample]; }

  void get(std::uint64_t /*step*/, int shard, exec::ShardInputs& inputs) override {
    auto& buffers = buffers_[static_cast<std::size_t>(shard)];
    Sample sample;
    std::vector<std::byte*> outputs;
    for (std::size_t i = 0; i < images_.size(); ++i) {
      sample.push_back({images_[i].name, decode(files_[static_cast<std::size_t>(shard)][i], images_[i])});
      buffers.emplace_back(pipeline_.outputs()[i].spec);
    }
    for (const Tensor& buffer : buffers) outputs.push_back(buffer.bytes());
    data::PipelineScratch scratch;
    pipeline_.run(sample, shard, 0, scratch, outputs);
    inputs.tensors.clear();
    inputs.valid = 1;
    for (const std::size_t feature : feature_of_) inputs.tensors.push_back(buffers[feature].bytes());
  }
  void release(std::uint64_t /*step*/, int shard) override { buffers_[static_cast<std::size_t>(shard)].clear(); }

 private:
  data::Pipeline make_pipeline(const PredictContext& context) const {
    data::PipelineOptions options;
    options.steps = context.job.data.prepare;
    options.mean = context.data.mean;
    options.stddev = context.data.stddev;
    return {images_, options, context.registries.augmentations};
  }

  std::vector<Feature> images_;
  std::vector<SampleFiles> files_;  // by sample
  data::Pipeline pipeline_;
  std::vector<std::size_t> feature_of_;       // by graph input
  std::vector<std::vector<Tensor>> buffers_;  // by sample, while it is computed
};

using Scores = std::vector<double>;

std::vector<Scores> run(const PredictContext& context, const Graph& graph, const SavedModel& model,
                        FileSource& source) {
  const bool classes = context.job.loss.kind == "cross_entropy";
  const std::int64_t width = graph.at(graph.output).spec.elements();
  std::vector<Scores> scores(source.samples());
  std::vector<int> samples(scores.size());
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<int>(i);
  const auto workers =
      exec::worker_count(context.job.threads, *make_single_communicator(), context.device, samples.size());
  exec::WorkerPool pool(workers);
  exec::Executor executor(graph, Mode::inference, context.device, pool, 0);
  executor.use({model.parameters, model.states});
  executor.evaluate(0, samples, source, [&](const exec::EvaluatedShard& shard) {
    scores[static_cast<std::size_t>(shard.shard)] =
        classes ? probabilities(shard.prediction, width) : Scores(shard.prediction, shard.prediction + width);
  });
  return scores;
}

std::string class_name(const DataSetInfo& info, std::size_t index) {
  return index < info.class_names.size() ? info.class_names[index] : fmt::format("{}", index);
}

void print_sample(const PredictContext& context, const std::vector<std::string>& files, const Scores& scores) {
  const DataSetInfo& info = context.data.train->info();
  const auto order = largest(scores, context.options.top);
  const bool classes = context.job.loss.kind == "cross_entropy";
  if (context.options.json) {
    nlohmann::ordered_json line = {{"event", "predict"}, {"files", files}};
    for (const std::size_t i : order) {
      line["classes"].push_back(
          {{"name", class_name(info, i)}, {"index", i}, {classes ? "probability" : "value", scores[i]}});
    }
    fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  for (const auto& file : files) fmt::print("{}\n", file);
  for (const std::size_t i : order) fmt::print("  {:>8.4f}  {}\n", scores[i], class_name(info, i));
}

}  // namespace

int predict_images(const PredictContext& context) {
  const Graph graph = train::make_prediction_graph(context.job, context.data, context.registries, 1);
  FileSource source(context, graph);
  const SavedModel model = load_saved_model(context.files, graph, context.job, *make_single_communicator());
  const auto scores = run(context, graph, model, source);
  for (std::size_t i = 0; i < scores.size(); ++i) print_sample(context, source.files_of(i), scores[i]);
  return 0;
}

}  // namespace lockstep::cli
