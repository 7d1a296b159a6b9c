#include "train/job_graph.hpp"

#include "graph/model_graph.hpp"
#include "graph/precision.hpp"

namespace lockstep::train {

namespace {

Graph in_precision(const Job& job, Graph graph) {
  set_precision(graph, precision_of(job));
  if (job.precision == "tf32") allow_tf32(graph);
  return graph;
}

}  // namespace

DType precision_of(const Job& job) {
  return job.precision == "bf16" ? DType::bf16 : job.precision == "fp16" ? DType::f16 : DType::f32;
}

Graph make_job_graph(const Job& job, const PreparedData& data, const Registries& registries) {
  return in_precision(job, build_model_graph({.model = &job.model,
                                              .loss = &job.loss,
                                              .metrics = job.metrics,
                                              .features = data.features,
                                              .classes = data.classes,
                                              .vocabulary = data.vocabulary,
                                              .batch = job.batch_size / job.shards},
                                             registries.ops, registries.models));
}

Graph make_prediction_graph(const Job& job, const PreparedData& data, const Registries& registries,
                            std::int64_t batch) {
  auto features = data.features;
  const std::string target = target_feature(job.loss.target, features);
  std::erase_if(features, [&](const Feature& feature) { return feature.name == target; });
  return in_precision(job, build_model_graph({.model = &job.model,
                                              .loss = nullptr,
                                              .metrics = {},
                                              .features = features,
                                              .classes = data.classes,
                                              .vocabulary = data.vocabulary,
                                              .batch = batch},
                                             registries.ops, registries.models));
}

}  // namespace lockstep::train
