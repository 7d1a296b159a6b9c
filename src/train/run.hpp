// Run: what is constant for a training run on one rank: the job, the ranks, what computes, the data, the graph of a
// shard, and how long it is going to train.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/spans.hpp"
#include "input/prepared_data.hpp"
#include "lockstep/trainer.hpp"
#include "optim/learning_rate.hpp"
#include "train/backend.hpp"
#include "train/model_parts.hpp"
#include "train/run_context.hpp"

namespace lockstep::train {

struct Run {
  /// Chooses the device, opens the data and builds the graph. Every rank calls it. What is given outlives it.
  Run(const JobFile& of_job, Communicator& ranks, const Registries& registries, const TrainerOptions& how,
      const DataSets& own);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() = default;

  const JobFile& job;
  const CanonicalJob canonical;
  Communicator& communicator;
  const TrainerOptions options;
  std::vector<events::Sink*> sinks;  ///< that get the events, on rank 0; observers add themselves
  const std::unique_ptr<Backend> backend;
  const RunContext context;  ///< the above, for the parts of the run
  const Clock::time_point start;

  const input::PreparedData data;
  const Graph graph;             ///< of the whole model
  const ModelParts parts;        ///< how it is divided between the ranks
  const double targets_in_mean;  ///< of the loss; fp16 only
  const std::int64_t steps_per_epoch, steps;
  const optim::LearningRate learning_rate;
};

}  // namespace lockstep::train
