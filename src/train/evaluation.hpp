// Evaluation: every sample exactly once, at any number of ranks and threads, with any shard assignment, to the same
// bits: per-sample values are gathered and added in order of the sample ids, in double. A rank may be slower than the
// others by any time (work_together.hpp); only one that finishes no shard for a while is a hang.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/transport/work_together.hpp"
#include "data/loader.hpp"
#include "exec/executor.hpp"
#include "lockstep/communicator.hpp"
#include "train/model_parts.hpp"

namespace lockstep::train {

struct EvaluationOptions {
  std::int64_t shard_samples = 0;  ///< b, as the graph has it
  std::int64_t cache_bytes = 0;
  std::chrono::milliseconds timeout{60'000};
  std::shared_ptr<const exec::InputFiller> filler = {};  ///< of the set, where it is on the GPU
  bool alike = false;                 ///< all ranks compute by rank 0's algorithms (agreed_algorithms.hpp)
  bool lowered = true;                ///< of exec::ExecutorOptions; as the model's GPU keeps it
  bool keeps_weights = true;          ///< of exec::ExecutorOptions
  bool once = false;                  ///< nothing is loaded ahead for a second run()
  const ModelParts* parts = nullptr;  ///< of a model that is cut; null: each rank has the whole
  std::vector<int> workers = {};      ///< of a model that is cut: of each rank
};

class Evaluation {
 public:
  /// The graph has a loss. All references must outlive it. Every rank makes one at the same time.
  Evaluation(const Graph& graph, const DataSet& set, data::Pipeline pipeline, Communicator& communicator,
             const exec::Device& device, exec::WorkerPool& pool, const EvaluationOptions& options);

  /// Shards that each rank evaluates, with the part of the model that it has; at first equal.
  [[nodiscard]] std::vector<int> counts() const;
  /// Others from the next run() on: a count for each rank, the same on every rank, of shards() in all for each part.
  void use_counts(const std::vector<int>& counts);
  [[nodiscard]] int shards() const { return shards_; }

  /// "loss" and the graph's metrics by name. Every rank calls it. Throws Error(infrastructure) where a rank has
  /// finished no shard for the timeout, but for a minute at least.
  std::map<std::string, double> run(const exec::ModelValues& model, std::uint64_t step);

  [[nodiscard]] data::LoaderCounters counters() const { return loader_.counters(); }

 private:
  [[nodiscard]] const std::vector<int>& mine() const;
  [[nodiscard]] bool is_cut() const { return options_.parts != nullptr; }
  [[nodiscard]] std::vector<std::vector<int>> ranks_of_parts() const;
  [[nodiscard]] std::vector<comm::ShardAssignment> assignments() const;
  [[nodiscard]] std::size_t columns() const { return 2 * (1 + graph_.metrics.size()); }
  void compute(std::vector<float>& rows, comm::WorkProgress& progress);
  void gather(std::vector<float>& rows, const Operation& operation) const;
  [[nodiscard]] std::vector<double> sums_of(const std::vector<float>& rows) const;
  [[nodiscard]] std::map<std::string, double> metrics_of(const std::vector<double>& sums) const;

  const Graph& graph_;
  Communicator& communicator_;
  EvaluationOptions options_;
  std::int64_t samples_;
  int shards_;
  std::vector<std::vector<int>> shards_of_rank_;
  exec::PartSchedule schedule_;  ///< of a model that is cut
  std::uint64_t runs_ = 0;       ///< begun so far: the loader's step
  std::unique_ptr<exec::Executor> executor_;
  data::Loader loader_;
};

/// sum / count, or exp of it, as the metric says.
[[nodiscard]] double metric_value(const OpDef& metric, double sum, double count);
/// "metric.accuracy" -> "accuracy"
[[nodiscard]] std::string metric_name(const Node& node);

}  // namespace lockstep::train
