// A trained model: loaded from a run, a checkpoint or a .safetensors file, evaluated, asked for predictions, saved.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/communicator.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"
#include "lockstep/tensor.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep {

struct EvaluationResult {
  std::map<std::string, double> metrics;  ///< "loss", and the job's metrics by name
  std::int64_t samples = 0;
  std::vector<std::string> warnings;  ///< of samples that others replaced (`data.bad_samples`); on rank 0
};

class TrainedModel {
 public:
  /// `which`: "newest" or "best" of the job's run directory, a checkpoint's directory, or a .safetensors file. The
  /// training data need not be there, unless it is such a file. `data`: sets of your own, as for train_job(). Every
  /// rank of the communicator makes one; it and the registries must outlive the model. Throws Error(data) where there
  /// is no such checkpoint, or where it is damaged or another model's.
  TrainedModel(const JobFile& job, const std::string& which, const Registries& registries, Communicator& communicator,
               const DataSets& data = {});
  ~TrainedModel();
  TrainedModel(const TrainedModel&) = delete;
  TrainedModel& operator=(const TrainedModel&) = delete;
  TrainedModel(TrainedModel&& other) noexcept;
  TrainedModel& operator=(TrainedModel&& other) noexcept;

  [[nodiscard]] const std::string& path() const;  ///< of the checkpoint or the file
  [[nodiscard]] std::int64_t step() const;        ///< of the checkpoint; -1 of a file, which does not say
  [[nodiscard]] std::string parameters_sha256() const;
  /// Of the training data, without the samples: features, names of classes.
  [[nodiscard]] const DataSetInfo& data() const;

  /// Every sample of a set of the job ("validation", "test" or "train") once. Every rank calls it; the bits do not
  /// depend on their number.
  [[nodiscard]] EvaluationResult evaluate(const std::string& set);
  /// The same of a set with the features of the training data.
  [[nodiscard]] EvaluationResult evaluate(const DataSet& set);

  /// What the model reads of a sample, as it is before the job's preparation; the rest of a sample is ignored.
  [[nodiscard]] const std::vector<Feature>& inputs() const;
  /// What it makes of a sample: its last layer's values, such as a score for each class.
  [[nodiscard]] const Shape& prediction_shape() const;
  /// Computes a prediction for each sample, on this rank alone and by several threads. Single calls of `take` may come
  /// at once and in any order.
  void predict(const DataSet& samples,
               const std::function<void(std::int64_t id, std::span<const float> prediction)>& take);
  /// The same of samples in memory, whose tensors are named as the features are.
  [[nodiscard]] std::vector<Tensor> predict(const std::vector<Sample>& samples);

  /// Writes parameters and states as one .safetensors file; a file that is there is replaced.
  void save(const std::string& path) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Softmax, in double. `temperature`: what scores are divided by.
[[nodiscard]] std::vector<double> probabilities(std::span<const float> scores, double temperature = 1);

}  // namespace lockstep
