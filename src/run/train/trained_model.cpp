#include "lockstep/trained_model.hpp"

#include <algorithm>
#include <cmath>

#include "config/files.hpp"
#include "run/checkpoint/files.hpp"
#include "run/train/loaded_model.hpp"

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

/// A job that was loaded without its data has unexpanded patterns only.
JobFile with_globs(JobFile job) {
  job.data.train = config::expanded(job.data.train);
  if (job.data.validation) job.data.validation = config::expanded(*job.data.validation);
  return job;
}

}  // namespace

struct TrainedModel::Parts {
  train::LoadedModel model;
};

TrainedModel::TrainedModel(const JobFile& job, const std::string& which, const Registries& registries,
                           Communicator& communicator, const DataSets& data)
    : parts_(new Parts{{job, which, registries, communicator, data, [job] { return with_globs(job); }}}) {}
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
                           const std::function<void(std::int64_t id, std::span<const float> prediction)>& take) {
  std::vector<double> offsets;
  for (const auto& output : parts_->model.outputs()) {
    for (std::size_t i = 0; i < output.size; ++i) offsets.push_back(output.offset(i));
  }
  if (std::all_of(offsets.begin(), offsets.end(), [](double offset) { return offset == 0; })) {
    return parts_->model.predict(samples, take);
  }
  parts_->model.predict(samples, [&](std::int64_t id, std::span<const float> prediction) {
    std::vector<float> values;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      values.push_back(prediction[i] + offsets[i]);
    }
    take(id, values);
  });
}

std::vector<Tensor> TrainedModel::predict(const std::vector<Sample>& samples) {
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

std::vector<double> probabilities(std::span<const float> scores, double temperature) {
  std::vector<double> values(scores.begin(), scores.end());
  const double max = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (double& value : values) sum += value = std::exp((value - max) / temperature);
  for (double& value : values) value /= sum;
  return values;
}

}  // namespace lockstep
