#include "run/train/loaded_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "config/files.hpp"
#include "core/cache_directory.hpp"
#include "core/input_source.hpp"
#include "data/soft_labels.hpp"
#include "graph/model_graph.hpp"
#include "lockstep/error.hpp"
#include "run/train/agreed_algorithms.hpp"
#include "run/train/bad_samples.hpp"
#include "run/train/device_choice.hpp"
#include "run/train/evaluation.hpp"
#include "run/train/job_graph.hpp"
#include "run/train/not_finite.hpp"
#include "run/train/plugins.hpp"
#include "step/exec/worker_pool.hpp"

namespace lockstep::train {

namespace {

/// The options of a set with a source of its own; null if the set is (part of) the training data.
const SourceOptions* own_source(const std::string& name, const Job& job) {
  const auto& source = name == "test" ? job.data.test : job.data.validation;
  return name != "train" && source ? &*source : nullptr;
}

EvaluationSet one_of(const std::string& name, const input::PreparedData& data) {
  return {name == "train" ? data.train : data.validation, data.replaced};
}

}  // namespace

void require_evaluation_set(const std::string& name, const Job& job, const DataSets& own) {
  if (name != "validation" && name != "test" && name != "train") {
    throw Error(ExitCode::usage, fmt::format("expected the set validation, test or train, found '{}'", name));
  }
  if (name == "test" && !job.data.test) {
    throw Error(ExitCode::usage,
                "--set test: the job has no test data; add data.test to the job file, or choose --set validation");
  }
  const DataOptions& data = job.data;
  if (name == "validation" && !own.validation && !data.has_validation()) {
    throw Error(ExitCode::usage,
                "--set validation: the job has no validation data; add data.validation to the job file, or "
                "choose --set train");
  }
}

EvaluationSet open_evaluation_set(const std::string& name, const Job& job, const DataSets& own,
                                  const input::PreparedData& known, const std::function<JobFile()>& with_data,
                                  Communicator& communicator) {
  const bool is_open = known.train != nullptr && name != "test";
  if (is_open) return one_of(name, known);
  auto set = name == "train" ? own.train : name == "validation" ? own.validation : nullptr;
  const SourceOptions* const source = own_source(name, job);
  if (!set && source != nullptr) {
    set = input::open_set(known, name, config::expanded(*source), communicator);
    if (data::has_soft_labels(job.data)) set = data::with_one_hot_labels(std::move(set));
  }
  if (set) return {data::with_bad_samples(std::move(set), job.data.bad_samples, name, known.replaced), known.replaced};
  return one_of(name, input::open_as_trained(known, name, with_data(), own, communicator));
}

namespace {

/// Features as they are before the pipeline.
std::vector<Feature> features_read(const Graph& graph, const DataSetInfo& info) {
  std::vector<Feature> features;
  for (const ValueId id : graph.inputs) {
    const auto found = std::find_if(info.features.begin(), info.features.end(),
                                    [&](const Feature& feature) { return feature.name == graph.at(id).name; });
    LOCKSTEP_CHECK(found != info.features.end(), "an input of a model is a feature of its data");
    features.push_back(*found);
  }
  return features;
}

/// Each sample is a micro-batch of its own, read and prepared by the worker that requests it.
class SampleSource final : public InputSource {
 public:
  SampleSource(const DataSet& samples, const data::Pipeline& pipeline)
      : samples_(samples), pipeline_(pipeline), prepared_(samples.size()) {}

  void get(std::uint64_t /*step*/, int micro_batch, MicroBatchInputs& inputs) override {
    Sample sample;
    samples_.read(micro_batch, sample);
    auto& tensors = prepared_[micro_batch];
    std::vector<std::byte*> outputs;
    for (const Feature& output : pipeline_.outputs()) {
      tensors.emplace_back(output.spec);
      outputs.push_back(tensors.back().bytes());
    }
    data::PipelineScratch scratch;
    pipeline_.run(inputs_of(std::move(sample), micro_batch), micro_batch, 0, scratch, outputs);
    inputs.tensors.assign(outputs.begin(), outputs.end());
    inputs.valid = 1;
  }
  void release(std::uint64_t /*step*/, int micro_batch) override { prepared_[micro_batch].clear(); }

 private:
  Sample inputs_of(Sample all, int id) const {
    Sample read;
    for (const Feature& input : pipeline_.inputs()) {
      const auto found =
          std::find_if(all.begin(), all.end(), [&](const NamedTensor& tensor) { return tensor.name == input.name; });
      if (found == all.end()) {
        throw Error(ExitCode::usage, fmt::format("sample {}: expected '{}', which the model reads; it has no tensor of "
                                                 "that name",
                                                 id, input.name));
      }
      read.push_back(std::move(*found));
    }
    return read;
  }

  const DataSet& samples_;
  const data::Pipeline& pipeline_;
  std::vector<std::vector<Tensor>> prepared_;  // by sample; kept only while it is computed
};

std::vector<ModelOutput> model_outputs(const Job& job, const Graph& graph, const DataSetInfo& info,
                                       const OpRegistry& ops) {
  const std::vector<Shape> shapes = output_shapes(graph);
  if (job.losses.empty()) {
    return {
        {"", &ops.at(job.loss.kind), shapes[0], 0, static_cast<std::size_t>(elements(shapes[0])), info.class_names}};
  }
  const std::vector<std::string> layers = outputs_of(job);
  std::vector<ModelOutput> outputs;
  std::size_t first = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto loss = std::find_if(job.losses.begin(), job.losses.end(),
                                   [&](const LossOptions& one) { return one.output == layers[i]; });
    const auto target = std::find_if(info.features.begin(), info.features.end(),
                                     [&](const Feature& feature) { return feature.name == loss->target; });
    const bool of_label = target != info.features.end() && target->name == "label";
    const std::size_t size = elements(shapes[i]);
    outputs.push_back({loss->name, &ops.at(loss->kind), shapes[i], first, size,
                       of_label                        ? info.class_names
                       : target != info.features.end() ? target->classes
                                                       : std::vector<std::string>()});
    first += size;
  }
  return outputs;
}

}  // namespace

std::optional<input::PreparedData> data_of(const checkpoint::SavedFiles& files, const Job& job,
                                           const DataRegistries& registries) {
  const std::string schema = checkpoint::schema_of(files);
  if (schema.empty()) return std::nullopt;
  const std::string where = files.checkpoint ? files.path + "/manifest.json" : files.path;
  return input::apply(input::Schema::parse(schema, where), job.data, job.seed, registries);
}

LoadedModel::LoadedModel(const JobFile& job, const std::string& which, const Registries& registries,
                         Communicator& communicator, const DataSets& own, WithData with_data)
    : job_(job),
      registries_(registries),
      communicator_(communicator),
      own_(own),
      with_data_(std::move(with_data)),
      backend_(choose_backend(job, communicator)) {
  const auto files = checkpoint::read_saved_files(which, job, communicator);
  const std::string plugins = plugins_text(registries.plugins);
  if (files.checkpoint && files.checkpoint->manifest.progress.plugins != plugins && communicator.rank() == 0) {
    warnings_.push_back(other_plugins(files.path, files.checkpoint->manifest.progress.plugins, plugins));
  }
  if (auto data = data_of(files, job, registries)) {
    data_ = std::move(*data);
  } else {
    const JobFile whole = with_data_();
    data_ = input::learn(whole.data, whole.seed, whole.batch_size, registries, own, {.communicator = &communicator});
    if (communicator.rank() == 0) {
      warnings_.push_back(
          fmt::format("{}: does not say which data it was trained with, so columns, classes and statistics are those "
                      "of the job's data as they are now",
                      files.path));
    }
  }
  graph_ = make_prediction_graph(job, data_, registries, 1);
  saved_ = checkpoint::load_saved_model(files, graph_, job, communicator);
  if (const auto where = not_finite(saved_.parameters, saved_.states); !where.empty()) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected finite numbers; the model's {}: take another", saved_.path, where));
  }
  inputs_ = features_read(graph_, data());
  const Shape& batch = graph_.at(graph_.output).spec.shape;
  prediction_shape_.assign(batch.begin() + 1, batch.end());
  outputs_ = model_outputs(job, graph_, data(), registries.ops);
  const std::vector<std::string> layers =
      job.losses.empty() ? std::vector<std::string>{job.loss.output} : outputs_of(job);
  const auto scales = this->scales();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (const auto scale = scales.find(layers[i]); scale != scales.end()) outputs_[i].offsets = scale->second.offset;
  }
}

std::map<std::string, TargetScale> LoadedModel::scales() const {
  return scales_of(job_, data_, registries_.ops);
}

EvaluationSet LoadedModel::open_set(const std::string& set) {
  require_evaluation_set(set, job_, own_);
  return open_evaluation_set(set, job_, own_, data_, with_data_, communicator_);
}

std::unique_ptr<SetPredictor> LoadedModel::predictor_of(const DataSet& set) {
  const Graph graph = graph_of(job_.batch_size / job_.micro_batches);
  return std::make_unique<SetPredictor>(
      SetPredictor::Parts{job_, graph, backend_->device(), values(), data_.pipeline(set, false)}, set, communicator_);
}

EvaluationResult LoadedModel::evaluate(const std::string& set) {
  const EvaluationSet opened = open_set(set);
  EvaluationResult result = evaluate(*opened.set, *opened.replaced);
  if (communicator_.rank() == 0) warn_of_trained(set, *opened.set, result.warnings);
  return result;
}

void LoadedModel::warn_of_trained(const std::string& name, const DataSet& set,
                                  std::vector<std::string>& warnings) const {
  if (name == "train") return;
  const bool is_cut = name != "test" && job_.data.cuts_validation() && !own_.validation;
  auto shared = input::shared_with_training(data_.schema, set, is_cut);
  if (!shared.empty()) warnings.push_back(fmt::format("{}: {}", name, shared));
}

EvaluationResult LoadedModel::evaluate(const DataSet& set, data::ReplacedSamples& replaced,
                                       std::vector<float>* predictions, std::vector<float>* losses) {
  Graph graph = make_evaluation_graph(job_, data_, registries_);
  graph.keeps_output = predictions != nullptr;
  exec::WorkerPool pool(exec::worker_count(job_.threads, communicator_, backend_->device(), set.size()));
  const EvaluationOptions options{.micro_batch_samples = job_.batch_size / job_.micro_batches,
                                  .timeout = job_.timeout(),
                                  .alike = computes_alike(job_, backend_->device()),
                                  .once = true};
  Evaluation evaluation(graph, set, data_.pipeline(set, false), communicator_, backend_->device(), pool, options);
  EvaluationResult result{.metrics = evaluation.run(values(), 0), .samples = set.size(), .warnings = warnings_};
  if (predictions != nullptr) *predictions = evaluation.predictions();
  if (losses != nullptr) *losses = evaluation.losses();
  if (communicator_.rank() == 0) {
    for (auto& warning : input::warnings_of(set.info())) result.warnings.push_back(std::move(warning));
    for (auto& warning : input::far_columns(data_.schema, set)) result.warnings.push_back(std::move(warning));
  }
  for (const auto& sample : gather_replaced(replaced, communicator_, {"evaluation", 0, options.timeout})) {
    result.warnings.push_back(sample.text());
  }
  return result;
}

data::Pipeline LoadedModel::pipeline() const {
  data::PipelineOptions preparation;
  preparation.steps = job_.data.prepare;
  preparation.mean = data_.schema.mean;
  preparation.stddev = data_.schema.stddev;
  return {inputs_, preparation, registries_.augmentations};
}

Graph LoadedModel::graph_of(std::int64_t samples) const {
  return make_prediction_graph(job_, data_, registries_, samples);
}

std::unique_ptr<LoadedModel::Workers> LoadedModel::workers_for(std::size_t samples) const {
  const int count = exec::worker_count(job_.threads, communicator_, backend_->device(), samples);
  {
    const std::lock_guard lock(mutex_);
    const auto enough =
        std::find_if(idle_.begin(), idle_.end(), [&](const auto& w) { return w->pool.size() >= count; });
    if (enough != idle_.end()) {
      auto found = std::move(*enough);
      idle_.erase(enough);
      return found;
    }
    if (!idle_.empty()) idle_.pop_back();  // too few: its memory is of more use to the new ones
  }
  auto made = std::make_unique<Workers>(count, graph_, backend_->device(), pipeline());
  made->executor.use(values());
  return made;
}

std::unique_ptr<exec::CachedModel> LoadedModel::cached() const {
  const bool possible = backend_->device().kind() == DeviceKind::cpu && exec::CachedModel::refusal(graph_).empty();
  return possible ? std::make_unique<exec::CachedModel>(graph_, values()) : nullptr;
}

void LoadedModel::predict(const DataSet& samples, const TakePrediction& take) const {
  if (samples.size() == 0) return;
  auto workers = workers_for(samples.size());
  SampleSource source(samples, workers->pipeline);
  std::vector<int> ids(samples.size());
  std::iota(ids.begin(), ids.end(), 0);
  const std::size_t values = elements(prediction_shape_);
  workers->executor.evaluate({.micro_batches = ids}, source, [&](const exec::EvaluatedMicroBatch& micro_batch) {
    take(micro_batch.micro_batch, std::span(micro_batch.prediction, values));
  });
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(workers));
}

std::string name_of_value(const ModelOutput& output, std::size_t i) {
  return output.classes.size() == output.size ? output.classes[i] : std::to_string(i + 1);
}

std::vector<std::string> value_names(const LoadedModel& model, std::size_t values) {
  if (model.outputs().size() > 1) {
    std::vector<std::string> names;
    for (const ModelOutput& output : model.outputs()) {
      for (std::size_t i = 0; i < output.size; ++i) {
        names.push_back(output.size == 1 ? output.name : fmt::format("{}/{}", output.name, name_of_value(output, i)));
      }
    }
    return names;
  }
  const auto& classes = model.data().class_names;
  if (classes.size() == values) return classes;
  if (classes.size() == 2 && values == 1) return {classes[1]};  // of binary cross entropy: the positive one
  for (const Feature& feature : model.data().features) {  // the columns of a table, which the job may name by patterns
    if (feature.kind == Feature::Kind::tensor && feature.classes.size() == values) return feature.classes;
  }
  const auto& targets = model.job().data.train.target;
  if (targets.size() == values) return targets;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < values; ++i) names.push_back(i == 0 ? "value" : fmt::format("value{}", i + 1));
  return names;
}

}  // namespace lockstep::train
