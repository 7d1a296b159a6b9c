#include "run/train/set_predictor.hpp"

#include <utility>

#include "core/round_up.hpp"
#include "graph/model_graph.hpp"
#include "lockstep/error.hpp"
#include "run/train/agreed_algorithms.hpp"

namespace lockstep::train {

namespace {

data::LoaderOptions loader_options(const JobFile& job, const Graph& graph, const DataSet& set,
                                   const Communicator& communicator) {
  data::LoaderOptions loader;
  loader.micro_batches = SetPredictor::micro_batches(job, set.size());
  loader.batch = job.batch_size / job.micro_batches * loader.micro_batches;
  loader.last_step = 1;
  loader.max_threads = exec::max_loader_threads(communicator);
  loader.training = false;
  loader.inputs = input_names(graph);
  return loader;
}

}  // namespace

SetPredictor::SetPredictor(Parts parts, const DataSet& set, Communicator& communicator)
    : micro_batch_samples_(parts.job.batch_size / parts.job.micro_batches),
      values_(parts.graph.at(parts.graph.output).spec.elements() / micro_batch_samples_),
      pool_(exec::worker_count(parts.job.threads, communicator, parts.device, micro_batches(parts.job, set.size()))),
      loader_(set, std::move(parts.pipeline), loader_options(parts.job, parts.graph, set, communicator)) {
  const auto make = [&](const std::vector<std::string>& algorithms) {
    return std::make_unique<exec::Executor>(parts.graph, Mode::inference, parts.device, pool_, 0,
                                            exec::ExecutorOptions{.algorithms = algorithms});
  };
  executor_ =
      computes_alike(parts.job, parts.device) ? make_with_algorithms_of_first_rank(communicator, make) : make({});
  executor_->use(parts.values);
}

int SetPredictor::micro_batches(const Job& job, std::int64_t samples) {
  return divide_up(samples, job.batch_size / job.micro_batches);
}

void SetPredictor::predict(const std::vector<int>& micro_batches,
                           const std::function<void(std::int64_t id, std::span<const float> prediction)>& take,
                           const std::function<void()>& advance) {
  loader_.assign(0, micro_batches);
  executor_->evaluate({.micro_batches = micro_batches}, loader_, [&](const exec::EvaluatedMicroBatch& micro_batch) {
    const std::int64_t first = micro_batch.micro_batch * micro_batch_samples_;
    for (std::int64_t i = 0; i < micro_batch.valid; ++i) {
      take(first + i, std::span(micro_batch.prediction + i * values_, values_));
    }
    advance();
  });
}

}  // namespace lockstep::train
