// Evaluation: every sample exactly once, at any number of ranks and threads to the same bits: per-sample values
// are gathered and added in order of the sample ids, in double.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "data/loader.hpp"
#include "exec/executor.hpp"
#include "lockstep/communicator.hpp"
#include "train/loader_source.hpp"

namespace lockstep::train {

struct EvaluationOptions {
  std::int64_t shard_samples = 0;  ///< b, as the graph has it
  std::int64_t cache_bytes = 0;
  std::chrono::milliseconds timeout{60'000};
  std::shared_ptr<const exec::InputFiller> filler = {};  ///< of the set, where it is on the GPU
  bool alike = false;                                    ///< all ranks compute by rank 0's plans (agreed_plans.hpp)
  bool lowered = true;                                   ///< of exec::ExecutorOptions; as the model's GPU keeps it
};

class Evaluation {
 public:
  /// The graph has a loss. All references must outlive it. Every rank makes one at the same time.
  Evaluation(const Graph& graph, const DataSet& set, data::Pipeline pipeline, Communicator& communicator,
             const exec::Device& device, exec::WorkerPool& pool, const EvaluationOptions& options);

  /// "loss" and the graph's metrics by name. Every rank calls it.
  std::map<std::string, double> run(const exec::ModelValues& model, std::uint64_t step);

 private:
  const Graph& graph_;
  Communicator& communicator_;
  EvaluationOptions options_;
  std::int64_t samples_;
  int shards_;
  std::vector<int> mine_;
  std::unique_ptr<exec::Executor> executor_;
  data::Loader loader_;
  LoaderSource source_;
};

/// sum / count, or exp of it, as the metric says.
[[nodiscard]] double metric_value(const OpDef& metric, double sum, double count);
/// "metric.accuracy" -> "accuracy"
[[nodiscard]] std::string metric_name(const Node& node);

}  // namespace lockstep::train
