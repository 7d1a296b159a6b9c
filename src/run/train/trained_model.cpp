#include "lockstep/trained_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "config/config.hpp"
#include "config/files.hpp"
#include "run/checkpoint/files.hpp"
#include "run/train/catalogue.hpp"
#include "run/train/loaded_model.hpp"
#include "step/exec/compiled.hpp"
#include "step/exec/micro_batch_runner.hpp"

namespace lockstep {

namespace {

/// Samples in memory; read() copies their tensors.
class SamplesInMemory final : public DataSet {
 public:
  SamplesInMemory(const std::vector<Sample>& samples, const DataSetInfo& info) : samples_(samples), info_(info) {}
  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return samples_.size(); }
  void read(std::int64_t id, Sample& out) const override {
    out.clear();
    for (const NamedTensor& from : samples_.at(id)) {
      out.push_back({from.name, Tensor(from.tensor.spec())});
      std::copy_n(from.tensor.bytes(), from.tensor.spec().bytes(), out.back().tensor.bytes());
    }
  }

 private:
  const std::vector<Sample>& samples_;
  const DataSetInfo& info_;
};

/// What is added to each value of a prediction; empty: nothing.
std::vector<double> offsets_of(const train::LoadedModel& model) {
  std::vector<double> offsets;
  for (const auto& output : model.outputs()) {
    for (std::size_t i = 0; i < output.size; ++i) offsets.push_back(output.offset(i));
  }
  const bool none = std::all_of(offsets.begin(), offsets.end(), [](double offset) { return offset == 0; });
  return none ? std::vector<double>() : offsets;
}

/// A job that was loaded without its data has unexpanded patterns only.
JobFile with_globs(JobFile job) {
  job.data.train = config::expanded(job.data.train);
  if (job.data.validation) job.data.validation = config::expanded(*job.data.validation);
  return job;
}

}  // namespace

struct TrainedModel::Parts {
  Parts(const JobFile& job, const std::string& which, const Registries& registries, Communicator& communicator,
        const DataSets& data)
      : model(job, which, registries, communicator, data, [job] { return with_globs(job); }) {}
  train::LoadedModel model;
};

TrainedModel::TrainedModel(const JobFile& job, const std::string& which, const Registries& registries,
                           Communicator& communicator, const DataSets& data)
    : parts_(std::make_unique<Parts>(config::completed(job, train::catalogue_of(registries)), which, registries,
                                     communicator, data)) {}
TrainedModel::~TrainedModel() = default;
TrainedModel::TrainedModel(TrainedModel&& other) noexcept = default;
TrainedModel& TrainedModel::operator=(TrainedModel&& other) noexcept = default;

const std::string& TrainedModel::path() const {
  return parts_->model.saved().path;
}

std::int64_t TrainedModel::step() const {
  return parts_->model.saved().step;
}

std::string TrainedModel::parameters_sha256() const {
  return exec::sha256_of(parts_->model.saved().parameters);
}

const DataSetInfo& TrainedModel::data() const {
  return parts_->model.data();
}

EvaluationResult TrainedModel::evaluate(const std::string& set) {
  return parts_->model.evaluate(set);
}

EvaluationResult TrainedModel::evaluate(const DataSet& set) {
  data::ReplacedSamples none;
  return parts_->model.evaluate(set, none);
}

const std::vector<Feature>& TrainedModel::inputs() const {
  return parts_->model.inputs();
}

const Shape& TrainedModel::prediction_shape() const {
  return parts_->model.prediction_shape();
}

void TrainedModel::predict(const DataSet& samples,
                           const std::function<void(std::int64_t id, std::span<const float> prediction)>& take) const {
  const std::vector<double> offsets = offsets_of(parts_->model);
  if (offsets.empty()) return parts_->model.predict(samples, take);
  parts_->model.predict(samples, [&](std::int64_t id, std::span<const float> prediction) {
    std::vector<float> values;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      values.push_back(prediction[i] + offsets[i]);
    }
    take(id, values);
  });
}

std::vector<Tensor> TrainedModel::predict(const std::vector<Sample>& samples) const {
  std::vector<Tensor> predictions(samples.size());
  predict(SamplesInMemory(samples, data()), [&](std::int64_t id, std::span<const float> prediction) {
    Tensor& out = predictions[id] = Tensor({DType::f32, prediction_shape()});
    std::copy(prediction.begin(), prediction.end(), out.as<float>().begin());
  });
  return predictions;
}

void TrainedModel::save(const std::string& path) const {
  checkpoint::write_whole(checkpoint::real_files(), path, checkpoint::safetensors_of(parts_->model.saved()));
}

struct Predictor::Parts {
  Parts(const train::LoadedModel& model, std::int64_t samples)
      : batch(samples),
        graph(device.lower(model.graph_of(samples), /*passes=*/true)),
        pipeline(model.pipeline()),
        view(exec::view_of(model.values().parameters, model.values().states)),
        offsets(offsets_of(model)) {
    exec::KernelSet kernels(graph, Mode::inference, device);
    program = exec::program_of(graph, Mode::inference, exec::needs_of(kernels));
    runner.emplace(program, std::move(kernels));
    for (const Feature& feature : pipeline.inputs()) sample.push_back({feature.name, Tensor(feature.spec)});
    for (const ValueId id : graph.inputs) {
      batches.emplace_back(graph.at(id).spec.bytes());
      operands.push_back(batches.back().data());
    }
    rows.resize(batches.size());
    values = elements(model.prediction_shape());
  }

  /// Inputs of sample `row` of the batch.
  void prepare(std::span<const std::byte* const> inputs, std::int64_t id, std::int64_t row) {
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const std::size_t bytes = sample[i].tensor.spec().bytes();
      std::copy_n(inputs[i] + id * bytes, bytes, sample[i].tensor.bytes());
      rows[i] = batches[i].data() + row * pipeline.outputs()[i].spec.bytes();
    }
    pipeline.run(sample, id, 0, scratch, rows);
  }

  /// The rows from `first` on, which are computed, too, must hold what kernels accept: tokens, for example.
  void clear(std::int64_t first) {
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const std::size_t used = first * pipeline.outputs()[i].spec.bytes();
      std::fill_n(batches[i].data() + used, batches[i].size() - used, std::byte{0});
    }
  }

  /// Predictions of the batch, [batch, values].
  const float* run() {
    runner->begin();
    const exec::MicroBatchOperands all{.inputs = operands, .model = *view, .slots = {}, .context = &context};
    for (std::size_t i = 0; i < program.instructions.size(); ++i) runner->run(i, all);
    return runner->result(program.results.prediction);
  }

  std::int64_t batch;
  exec::CpuDevice device;
  Graph graph;
  data::Pipeline pipeline;
  std::shared_ptr<const exec::ModelView> view;
  std::vector<double> offsets;  ///< by value of a prediction; empty: none
  std::size_t values = 0;       ///< of a prediction
  Program program;
  std::optional<exec::MicroBatchRunner> runner;
  const StepContext context{.parameters_version = 1};
  Sample sample;
  data::PipelineScratch scratch;
  std::vector<AlignedBytes> batches;  ///< by input of the graph
  std::vector<const void*> operands;  ///< the same
  std::vector<std::byte*> rows;       ///< the same, of one sample
};

Predictor::Predictor(const TrainedModel& model, std::int64_t batch) {
  if (batch < 1) throw Error(ExitCode::usage, fmt::format("expected a batch of at least 1 sample, found {}", batch));
  for (const Feature& feature : model.inputs()) {
    const Shape& shape = feature.spec.shape;
    if (std::find(shape.begin(), shape.end(), -1) == shape.end()) continue;
    throw Error(ExitCode::usage, fmt::format("'{}': expected images of one size, found a model that takes any; use "
                                             "TrainedModel::predict()",
                                             feature.name));
  }
  parts_ = std::make_unique<Parts>(model.parts_->model, batch);
}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&& other) noexcept = default;
Predictor& Predictor::operator=(Predictor&& other) noexcept = default;

void Predictor::predict(std::int64_t samples, std::span<const std::byte* const> inputs, std::span<float> predictions) {
  Parts& parts = *parts_;
  if (inputs.size() != parts.sample.size() || predictions.size() != samples * parts.values) {
    throw Error(ExitCode::usage,
                fmt::format("expected {} inputs and {} values for the predictions of {} samples, found {} and {}",
                            parts.sample.size(), samples * parts.values, samples, inputs.size(), predictions.size()));
  }
  for (std::int64_t first = 0; first < samples; first += parts.batch) {
    const std::int64_t count = std::min(parts.batch, samples - first);
    for (std::int64_t row = 0; row < count; ++row) parts.prepare(inputs, first + row, row);
    if (count < parts.batch) parts.clear(count);
    const float* const made = parts.run();
    float* const to = predictions.data() + first * parts.values;
    std::copy_n(made, count * parts.values, to);
    for (std::size_t i = 0; i < count * parts.offsets.size(); ++i) to[i] = made[i] + parts.offsets[i % parts.values];
  }
}

std::vector<double> probabilities(std::span<const float> scores, double temperature) {
  std::vector<double> values(scores.begin(), scores.end());
  const double max = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (double& value : values) sum += value = std::exp((value - max) / temperature);
  for (double& value : values) value /= sum;
  return values;
}

}  // namespace lockstep
