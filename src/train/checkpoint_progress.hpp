// What a checkpoint holds besides the tensors: all that the bits of the rest of the run depend on.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace lockstep::train {

/// The best that a metric was in an evaluation.
struct BestValue {
  std::string metric;  ///< empty: not evaluated yet
  double value = 0;
};

/// Where the scale of the loss has got to (loss_scaling.hpp).
struct LossScale {
  double scale = 0;               ///< of the next step, a power of two; 0: the precision is not fp16
  std::int64_t good_updates = 0;  ///< in a row, since the scale was changed
  std::int64_t left_out = 0;      ///< updates, in all
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
  bool finished = false;                  ///< by early stopping, before the last step
  std::map<std::string, double> metrics;  ///< of the last evaluation
  LossScale loss_scale;
  /// Whatever else a run wants to find again, by name: class names, statistics, shares. Kept as it is.
  std::map<std::string, std::string> metadata;
};

}  // namespace lockstep::train
