// Evaluation: every sample exactly once, with the same bits for any number of ranks and threads and any micro-batch
// assignment: per-sample values are gathered and added in order of the sample ids, in double; those of metrics that are
// whole numbers, of which there can be some for each class, are added where they are. A rank may be arbitrarily
// slower than the others (work_together.hpp); only one that finishes no micro-batch for a while is considered hung.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/transport/work_together.hpp"
#include "data/loader.hpp"
#include "lockstep/communicator.hpp"
#include "run/train/model_parts.hpp"
#include "step/exec/executor.hpp"

namespace lockstep::train {

struct EvaluationOptions {
  std::int64_t micro_batch_samples = 0;  ///< b in the graph's shapes
  std::int64_t cache_bytes = 0;
  std::chrono::milliseconds timeout{60'000};
  std::shared_ptr<const exec::InputFiller> filler = {};  ///< of the set, if it is on the GPU
  bool alike = false;                                    ///< all ranks use rank 0's algorithms (agreed_algorithms.hpp)
  bool lowered = true;                                   ///< see exec::ExecutorOptions
  bool keeps_weights = true;                             ///< see exec::ExecutorOptions
  bool once = false;                  ///< run() is called only once: nothing is loaded ahead for another run
  const ModelParts* parts = nullptr;  ///< if the model is cut; null: each rank has the whole
  std::vector<int> workers = {};      ///< by rank; empty: ranks neither have parts nor divide parameters
};

class Evaluation {
 public:
  /// The graph must have a loss. All references must outlive the object. Every rank makes one at the same time.
  Evaluation(const Graph& graph, const DataSet& set, data::Pipeline pipeline, Communicator& communicator,
             const exec::Device& device, exec::WorkerPool& pool, const EvaluationOptions& options);

  /// Micro-batches that each rank evaluates with its part of the model; initially equal.
  std::vector<int> counts() const;
  /// Changes the counts from the next run() on: one per rank, the same on every rank, adding up to micro-batches() for
  /// each part.
  void use_counts(const std::vector<int>& counts);
  int micro_batches() const { return micro_batches_; }

  /// "loss" and the graph's metrics by name. Collective. Throws Error(infrastructure) if a rank has finished no
  /// micro-batch for the timeout, or for one minute, whichever is longer.
  std::map<std::string, double> run(const exec::ModelValues& model, std::uint64_t step) {
    return *run_unless_stopped(model, step, {});
  }
  /// The same; nullopt on all ranks if `stop` has asked for an end on one of them. No other run may follow then.
  std::optional<std::map<std::string, double>> run_unless_stopped(const exec::ModelValues& model, std::uint64_t step,
                                                                  const comm::StopPoll& stop);
  /// Of a graph that keeps_output: what the last run() has predicted, sample after sample, on every rank.
  const std::vector<float>& predictions() const { return predictions_; }
  /// The loss of each sample in the last run(), on every rank; of a model that is cut, on the ranks of its last part.
  const std::vector<float>& losses() const { return losses_; }

  data::LoaderCounters counters() const { return loader_.counters(); }

 private:
  const std::vector<int>& mine() const;
  bool is_cut() const { return options_.parts != nullptr; }
  std::vector<std::vector<int>> ranks_of_parts() const;
  std::vector<comm::MicroBatchAssignment> assignments() const;
  std::size_t columns() const { return columns_; }
  void compute(std::vector<float>& rows, comm::WorkProgress& progress);
  void add_whole_numbers(const exec::EvaluatedMicroBatch& micro_batch);
  void gather(std::vector<float>& rows, const Operation& operation) const;
  void add_up_whole_numbers(const Operation& operation);
  void keep_predictions(const std::vector<float>& rows);
  void keep_losses(const std::vector<float>& rows);
  std::vector<double> sums_of(const std::vector<float>& rows) const;
  /// Writes the value of each metric of all samples together over the sum of its first column.
  void take_metrics_of_samples(const std::vector<float>& rows, std::vector<double>& sums) const;
  /// `sums`: of the columns, then of the whole numbers.
  std::map<std::string, double> metrics_of(std::span<const double> sums) const;

  /// A metric's place among the columns of a sample, or, if its values are whole numbers, among the sums of those.
  struct MetricPlace {
    bool whole = false;
    std::size_t first = 0, values = 1;
  };

  const Graph& graph_;
  Communicator& communicator_;
  EvaluationOptions options_;
  std::int64_t samples_;
  std::vector<MetricPlace> places_;  ///< by metric
  std::size_t columns_ = 2;          ///< of a sample: loss, count, the metrics that are not whole numbers, and
                                     ///< what is predicted, if the graph keeps_output
  std::size_t predicted_ = 0;        ///< columns of that; the last ones
  std::vector<float> predictions_, losses_;
  std::vector<std::int64_t> whole_sums_;  ///< sums of whole numbers, which are the same in any order
  std::mutex whole_mutex_;                ///< guards whole_sums_: workers add micro-batches to it
  int micro_batches_;
  std::vector<std::vector<int>> micro_batches_of_rank_;
  exec::PartSchedule schedule_;  ///< if the model is cut
  std::uint64_t runs_ = 0;       ///< runs begun so far: the loader's step
  std::unique_ptr<exec::Executor> executor_;
  data::Loader loader_;
};

/// Of the sums of a metric's values and, last, of its count: sum / count, or its exp or root, or what the metric
/// reports; of a metric of all samples together, the first.
[[nodiscard]] double metric_value(const OpDef& metric, std::span<const double> sums);
/// Adds what a metric reports, by name: "accuracy", or of one with a value for each class "mean_iou" and "circle/iou".
void add_metric(const Node& node, std::span<const double> sums, std::map<std::string, double>& metrics);
/// A metric of several numbers is the mean of the numbers' own, as in scikit-learn.
void average_over_numbers(const Graph& graph, std::map<std::string, double>& metrics);
/// "metric.accuracy" -> "accuracy"
[[nodiscard]] std::string metric_name(const Node& node);

}  // namespace lockstep::train
