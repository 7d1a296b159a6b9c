// SetPredictor: a model's predictions of the samples of a set, in micro-batches of the job's size, each of which always
// has the same samples: a prediction has the same bits whichever rank computes it, with however many threads.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "data/loader.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/job.hpp"
#include "step/exec/executor.hpp"
#include "step/exec/worker_pool.hpp"

namespace lockstep::train {

class SetPredictor {
 public:
  struct Parts {
    const JobFile& job;
    const Graph& graph;  ///< for a micro-batch, without loss
    const exec::Device& device;
    exec::ModelValues values;
    data::Pipeline pipeline;
  };
  /// Collective: on GPUs the ranks agree on algorithms. The set must not be empty. What `parts` and `set` refer to must
  /// outlive the object, but for the graph.
  SetPredictor(Parts parts, const DataSet& set, Communicator& communicator);

  /// Micro-batches of this set: sample i is in micro-batch i / (samples of a micro-batch).
  [[nodiscard]] static int micro_batches(const Job& job, std::int64_t samples);
  /// `take` gets the prediction of each sample of these micro-batches, ascending, and `advance` is called after each
  /// micro-batch; both concurrently and in any order. On this rank only, once.
  void predict(const std::vector<int>& micro_batches,
               const std::function<void(std::int64_t id, std::span<const float> prediction)>& take,
               const std::function<void()>& advance);

 private:
  std::int64_t micro_batch_samples_;
  std::size_t values_;  ///< of a sample's prediction
  exec::WorkerPool pool_;
  std::unique_ptr<exec::Executor> executor_;
  data::Loader loader_;
};

}  // namespace lockstep::train
