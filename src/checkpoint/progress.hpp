// What a checkpoint holds besides the tensors: all that the bits of the rest of the run depend on.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "optim/loss_scaling.hpp"

namespace lockstep::checkpoint {

/// The best that a metric was in an evaluation.
struct BestValue {
  std::string metric;  ///< empty: not evaluated yet
  double value = 0;
};

struct Progress {
  std::int64_t step = 0;  ///< steps done
  std::int64_t samples = 0;
  std::uint64_t seed = 0;
  std::int64_t shards = 0;
  std::string job_digest, job;  ///< canonical form
  std::string data_digest, fingerprint, instructions;
  std::string data_facts;  ///< JSON: what using the model needs to know of its data (data_facts.hpp)
  std::string exactness;   ///< "bitwise" as long as one fingerprint computed all of it
  BestValue best;          ///< of `checkpoint.best`
  BestValue stop_best;     ///< of `early_stop.metric`
  std::int64_t evaluations_without_improvement = 0;
  bool finished = false;                  ///< by early stopping or a callback, before the last step
  double learning_rate_factor = 1;        ///< that a callback has set
  std::map<std::string, double> metrics;  ///< of the last evaluation
  optim::LossScale loss_scale;
  /// Whatever else a run wants to find again, by name: class names, statistics, shard counts. Kept as it is.
  std::map<std::string, std::string> metadata;
};

}  // namespace lockstep::checkpoint
