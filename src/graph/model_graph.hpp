// Builds the graph of one micro-batch from the job's model and the data set's features: layers, loss and metrics.
#pragma once

#include <map>

#include "graph/target_scale.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/graph_builder.hpp"
#include "lockstep/job.hpp"

namespace lockstep {

struct ModelGraphRequest {
  const ModelOptions* model = nullptr;
  const LossOptions* loss = nullptr;     ///< null: the model only, or `losses`
  std::vector<LossOptions> losses = {};  ///< several, which are added; each is reported, too, as NAME/loss
  /// Without a loss: the layers whose outputs, flattened, are joined to one prediction; empty: the last layer alone.
  std::vector<std::string> outputs = {};
  std::vector<std::string> metrics;  ///< of several losses NAME/METRIC
  /// What layers predict on a scale of its own, by layer, "" for the last one.
  std::map<std::string, TargetScale> scales = {};
  std::vector<Feature> features;  ///< as a step gets them: images are f32, all of one shape
  std::int64_t classes = 0, vocabulary = 0;
  std::int64_t batch = 0;  ///< samples of a micro-batch
};

/// Throws Error(configuration) with the layer's place in the job file.
[[nodiscard]] Graph build_model_graph(const ModelGraphRequest& request, const OpRegistry& ops,
                                      const ModelRegistry& models);

struct Compared {
  ValueId prediction, target;
};

/// Appends the loss and the metrics (job.metrics) of a prediction; the metrics may be told of it on another scale than
/// the loss. `numbers`: the names of a target's numbers; of several, mae, rmse and r2 are also told by number, as
/// NUMBER/METRIC, and Node::classes of the metric itself, which is their mean, names them. `weight`, if it is not -1,
/// is an input [b] by which the loss counts the samples; metrics count all alike.
void add_loss_and_metrics(GraphBuilder& builder, const Compared& of_loss, const Compared& of_metrics,
                          const LossOptions& loss, const std::vector<std::string>& metrics,
                          const std::vector<std::string>& numbers = {}, ValueId weight = -1);

/// The losses: the graph's, or of several those that are added.
[[nodiscard]] std::vector<const Node*> loss_nodes(const Graph& graph);

/// Of a sample: what each of the layers predicts that ModelGraphRequest::outputs has named, or the only one.
[[nodiscard]] std::vector<Shape> output_shapes(const Graph& graph);

/// Whether more of a reported metric is better: of "accuracy", or of "kind/accuracy". False for "loss", and for a name
/// that is no metric's.
[[nodiscard]] bool higher_is_better(const OpRegistry& ops, const std::string& metric);

/// The features that a graph reads, by name, in the order of its inputs.
[[nodiscard]] std::vector<std::string> input_names(const Graph& graph);

/// The feature that the loss compares with: `wanted`, or "target" for token sets; throws if it does not exist.
[[nodiscard]] std::string target_feature(const std::string& wanted, const std::vector<Feature>& features);

}  // namespace lockstep
