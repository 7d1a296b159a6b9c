// A trained model: loaded from a run, a checkpoint or a .safetensors file; can be evaluated, make predictions and be
// saved.
#pragma once

#include <cstddef>
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
  std::vector<std::string> warnings;  ///< about samples that were replaced (`data.bad_samples`), and plugins that are
                                      ///< not those of the training; on rank 0
};

class TrainedModel {
 public:
  /// `which`: "newest", "best" or "auto" (the best with `early_stop.restore_best`, else the newest) of the job's run
  /// directory, a checkpoint's directory, or a .safetensors file. The training data are needed only for a .safetensors
  /// file. `data`: sets of your own, as for train_job(). Collective: every rank of the communicator makes one; the
  /// communicator and the registries must outlive the model. Throws Error(data) if there is no such checkpoint, or if
  /// it is damaged or belongs to another model.
  TrainedModel(const JobFile& job, const std::string& which, const Registries& registries, Communicator& communicator,
               const DataSets& data = {});
  ~TrainedModel();
  TrainedModel(const TrainedModel&) = delete;
  TrainedModel& operator=(const TrainedModel&) = delete;
  TrainedModel(TrainedModel&& other) noexcept;
  TrainedModel& operator=(TrainedModel&& other) noexcept;

  const std::string& path() const;  ///< of the checkpoint or the file
  std::int64_t step() const;        ///< of the checkpoint; -1 for a .safetensors file, which has none
  std::string parameters_sha256() const;
  /// About the training data, without the samples: features, names of classes.
  const DataSetInfo& data() const;

  /// Evaluates every sample of one of the job's sets ("validation", "test" or "train") once. Collective; the bits do
  /// not depend on the number of ranks.
  [[nodiscard]] EvaluationResult evaluate(const std::string& set);
  /// The same for a set that has the features of the training data.
  [[nodiscard]] EvaluationResult evaluate(const DataSet& set);

  /// What the model reads from a sample, before the job's preparation; other features of a sample are ignored.
  const std::vector<Feature>& inputs() const;
  /// The shape of a sample's prediction: the last layer's values, such as one score per class.
  const Shape& prediction_shape() const;
  /// Computes a prediction for each sample, on this rank only, with several threads. `take` may be called concurrently
  /// and in any order. Thread-safe; evaluate() must not run beside it. Throws Error(usage) if a sample lacks an input,
  /// Error(data) if one does not fit.
  void predict(const DataSet& samples,
               const std::function<void(std::int64_t id, std::span<const float> prediction)>& take) const;
  /// The same for samples in memory, whose tensors are named like the features.
  [[nodiscard]] std::vector<Tensor> predict(const std::vector<Sample>& samples) const;

  /// Writes parameters and states as one .safetensors file; replaces an existing one.
  void save(const std::string& path) const;

 private:
  friend class Predictor;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Predictions of plain arrays on the calling thread, on the CPU: the kernels and the memory of one thread. Threads
/// have one each, of one model. After the first call nothing is allocated, unless a step of `prepare` does.
class Predictor {
 public:
  /// Computes up to `batch` samples at once. A sample's bits do not depend on the samples beside it, but may on
  /// `batch`; with 1 they are those of TrainedModel::predict(). The model must outlive it. Throws Error(usage) for a
  /// model whose images are of different sizes.
  explicit Predictor(const TrainedModel& model, std::int64_t batch = 1);
  ~Predictor();
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;
  Predictor(Predictor&& other) noexcept;
  Predictor& operator=(Predictor&& other) noexcept;

  /// `inputs[i]`: TrainedModel::inputs()[i] of all samples, one behind the other, [samples, its shape] of its type.
  /// `predictions`: written, [samples, TrainedModel::prediction_shape()]. Any number of samples. Throws Error(usage) if
  /// the arrays are not as many or as long.
  void predict(std::int64_t samples, std::span<const std::byte* const> inputs, std::span<float> predictions);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Softmax, in double. `temperature`: scores are divided by it.
[[nodiscard]] std::vector<double> probabilities(std::span<const float> scores, double temperature = 1);

}  // namespace lockstep
