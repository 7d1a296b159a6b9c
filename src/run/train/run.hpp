// Run: what stays constant during a training run on one rank: the job, the ranks, the device, the data, the graph of a
// micro-batch, and the length of the run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/spans.hpp"
#include "data/input/prepared_data.hpp"
#include "lockstep/trainer.hpp"
#include "run/train/backend.hpp"
#include "run/train/model_parts.hpp"
#include "run/train/run_context.hpp"
#include "step/optim/learning_rate.hpp"

namespace lockstep::train {

struct Run {
  /// Chooses the device, opens the data and builds the graph. Collective. The arguments must outlive it.
  Run(const JobFile& of_job, Communicator& ranks, const Registries& registries, const TrainerOptions& how,
      const DataSets& own);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() = default;

  const JobFile& job;
  const CanonicalJob canonical;
  Communicator& communicator;
  const TrainerOptions options;
  std::vector<events::Sink*> sinks;  ///< receive the events, on rank 0; observers add themselves
  const std::unique_ptr<Backend> backend;
  const RunContext context;  ///< references to the above, for the components of the run
  const Clock::time_point start;

  const input::PreparedData data;
  const Graph graph;             ///< of the whole model
  const ModelParts parts;        ///< how the model is divided between the ranks
  const double targets_in_mean;  ///< of the loss; fp16 only
  const std::int64_t steps_per_epoch, steps;
  const optim::LearningRate learning_rate;
};

}  // namespace lockstep::train
