// Builds the graph of one shard from the job's model and the data set's features: layers, loss and metrics.
#pragma once

#include "lockstep/data_set.hpp"
#include "lockstep/graph_builder.hpp"
#include "lockstep/job.hpp"

namespace lockstep {

struct ModelGraphRequest {
  const ModelOptions* model = nullptr;
  const LossOptions* loss = nullptr;  ///< null: the model only
  std::vector<std::string> metrics;
  std::vector<Feature> features;  ///< as a step gets them: images are f32, all of one shape
  std::int64_t classes = 0, vocabulary = 0;
  std::int64_t batch = 0;  ///< samples of a shard
};

/// Throws Error(configuration) with the layer's place in the job file.
[[nodiscard]] Graph build_model_graph(const ModelGraphRequest& request, const OpRegistry& ops,
                                      const ModelRegistry& models);

/// Appends the loss and the metrics (job.metrics) of a prediction. `weight`, if it is not -1, is an input [b] by which
/// the loss counts the samples; metrics count all alike.
void add_loss_and_metrics(GraphBuilder& builder, ValueId prediction, ValueId target, const LossOptions& loss,
                          const std::vector<std::string>& metrics, ValueId weight = -1);

/// The features that a graph reads, by name, in the order of its inputs.
[[nodiscard]] std::vector<std::string> input_names(const Graph& graph);

/// The feature that the loss compares with: `wanted`, or "target" for token sets; throws if it does not exist.
[[nodiscard]] std::string target_feature(const std::string& wanted, const std::vector<Feature>& features);

}  // namespace lockstep
