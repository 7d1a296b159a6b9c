// A balancer of your own: how many of a step's micro-batches each rank computes. The bits of the result do not depend
// on it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// What a rank did in one step.
struct RankLoad {
  std::string host;
  int workers = 1;        ///< threads or streams that compute micro-batches
  int micro_batches = 0;  ///< micro-batches it computed
  double seconds = 0;     ///< time spent computing them, summed over its workers
};

class MicroBatchBalancer {
 public:
  virtual ~MicroBatchBalancer() = default;
  /// Called on rank 0 after each step. `step`: steps done. Returns a number of micro-batches for each rank, the job's
  /// `micro_batches` in total, or nothing for no change. A change takes effect after the next step.
  [[nodiscard]] virtual std::vector<int> balance(std::int64_t step, std::span<const RankLoad> ranks) = 0;
};

}  // namespace lockstep
