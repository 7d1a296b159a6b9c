// A trained model, what is known about its data, and the sets that it is evaluated on; used by TrainedModel and by the
// program's commands.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/input/prepared_data.hpp"
#include "data/replacing_set.hpp"
#include "graph/target_scale.hpp"
#include "lockstep/trained_model.hpp"
#include "lockstep/trainer.hpp"
#include "run/checkpoint/saved_model.hpp"
#include "run/train/backend.hpp"
#include "run/train/set_predictor.hpp"
#include "step/exec/cached_model.hpp"
#include "step/exec/executor.hpp"

namespace lockstep::train {

struct EvaluationSet {
  std::shared_ptr<const DataSet> set;
  std::shared_ptr<data::ReplacedSamples> replaced;
};

/// `name`: validation, test or train. Throws Error(usage) for another name, or if the job has no such set.
void require_evaluation_set(const std::string& name, const Job& job, const DataSets& own = {});

/// Opens a set of the job. `known`: what a checkpoint remembers of the training data, or the training data themselves,
/// which then serve as the set where it is (part of) them. If the data are still needed, `with_data` returns a job
/// whose files must exist.
[[nodiscard]] EvaluationSet open_evaluation_set(const std::string& name, const Job& job, const DataSets& own,
                                                const input::PreparedData& known,
                                                const std::function<JobFile()>& with_data, Communicator& communicator);

/// The data through the schema that the files have; nothing for weights of other programs, and for checkpoints of early
/// versions.
[[nodiscard]] std::optional<input::PreparedData> data_of(const checkpoint::SavedFiles& files, const Job& job,
                                                         const DataRegistries& registries);

/// What a model predicts of a sample for one of its losses, or for all that read the same layer.
struct ModelOutput {
  std::string name;             ///< of the first loss, such as "kind"; empty if the model has one loss
  const OpDef* loss = nullptr;  ///< the first
  Shape shape;
  std::size_t first = 0, size = 0;   ///< its elements in the prediction
  std::vector<std::string> classes;  ///< of the target; empty: it has none
  std::vector<double> offsets = {};  ///< Feature::offsets of the target, which its prediction lacks, too
  double offset(std::size_t number) const { return offsets.empty() ? 0 : offsets[number]; }
};

/// Of value `i` of several: its class, or its number from 1.
[[nodiscard]] std::string name_of_value(const ModelOutput& output, std::size_t i);

class LoadedModel {
 public:
  /// Returns the job with its data, if they are needed: the files that it names must exist.
  using WithData = std::function<JobFile()>;

  /// As TrainedModel's constructor, except that the job may have been loaded without its data.
  LoadedModel(const JobFile& job, const std::string& which, const Registries& registries, Communicator& communicator,
              const DataSets& own, WithData with_data);

  const JobFile& job() const { return job_; }
  const checkpoint::SavedModel& saved() const { return saved_; }
  const DataSetInfo& data() const { return data_.schema.info; }
  const input::PreparedData& prepared() const { return data_; }
  /// For one sample: no loss, no metrics.
  const Graph& graph() const { return graph_; }
  const std::vector<Feature>& inputs() const { return inputs_; }
  /// Of several outputs, which are joined: [elements].
  const Shape& prediction_shape() const { return prediction_shape_; }
  const std::vector<ModelOutput>& outputs() const { return outputs_; }
  /// As scales_of().
  std::map<std::string, TargetScale> scales() const;
  /// What a user should know of the model before its results; on rank 0.
  const std::vector<std::string>& warnings() const { return warnings_; }

  [[nodiscard]] EvaluationResult evaluate(const std::string& set);
  /// `predictions`, `losses`: raw ones, sample after sample, are written there; null: nowhere.
  [[nodiscard]] EvaluationResult evaluate(const DataSet& set, data::ReplacedSamples& replaced,
                                          std::vector<float>* predictions = nullptr,
                                          std::vector<float>* losses = nullptr);

  /// Opens a set of the job. Collective.
  [[nodiscard]] EvaluationSet open_set(const std::string& set);
  /// Adds a warning if samples of the job's set `name` are known to be in the training set, and it is not that.
  void warn_of_trained(const std::string& name, const DataSet& set, std::vector<std::string>& warnings) const;
  /// Predictions of a set by micro-batches. Collective; `set` and this model must outlive the result.
  [[nodiscard]] std::unique_ptr<SetPredictor> predictor_of(const DataSet& set);
  /// Weights may be overwritten; the next evaluate() or predictor_of() computes with them.
  [[nodiscard]] checkpoint::SavedModel& saved() { return saved_; }

  using TakePrediction = std::function<void(std::int64_t id, std::span<const float> prediction)>;
  /// Thread-safe.
  void predict(const DataSet& samples, const TakePrediction& take) const;
  /// What becomes of a sample's inputs().
  data::Pipeline pipeline() const;
  /// Without loss, for so many samples at once.
  Graph graph_of(std::int64_t samples) const;
  exec::ModelValues values() const { return {saved_.parameters, saved_.states}; }
  /// The model for one sample, position by position; null where that is not possible (CachedModel::refusal), or where
  /// the job trains on GPUs. This model must outlive it.
  std::unique_ptr<exec::CachedModel> cached() const;

 private:
  /// What computes the samples of one call of predict() at a time.
  struct Workers {
    Workers(int count, const Graph& graph, const exec::Device& device, data::Pipeline prepares)
        : pool(count), executor(graph, Mode::inference, device, pool, 0), pipeline(std::move(prepares)) {}
    exec::WorkerPool pool;
    exec::Executor executor;
    data::Pipeline pipeline;
  };
  std::unique_ptr<Workers> workers_for(std::size_t samples) const;

  const JobFile job_;
  const Registries& registries_;
  Communicator& communicator_;
  const DataSets own_;
  const WithData with_data_;
  std::unique_ptr<Backend> backend_;
  input::PreparedData data_;
  Graph graph_;
  checkpoint::SavedModel saved_;
  std::vector<Feature> inputs_;  ///< by input of the graph
  Shape prediction_shape_;
  std::vector<ModelOutput> outputs_;
  std::vector<std::string> warnings_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Workers>> idle_;  ///< guarded by mutex_: no call uses them now
};

/// The names of a prediction's numbers: classes, of two with one number the second; a table's targets; or value,
/// value2, ...; of several outputs kind/cat, price, box/1, ...
[[nodiscard]] std::vector<std::string> value_names(const LoadedModel& model, std::size_t values);

}  // namespace lockstep::train
