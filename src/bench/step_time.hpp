// How much longer a step takes while some devices are slow or missing.
//
// The batch is always cut into the same shards. A step ends when the last shard is computed, and no shard is divided:
// with few shards a device, one that is a little slow costs a whole shard's time. Balanced means that shards move to
// where they are done first (balance/); otherwise each device computes as many as any other, and all wait for the
// slowest.
#pragma once

namespace lockstep::bench {

struct StepLoad {
  int devices = 1;          ///< of the whole job; a step on all of them, equally fast, takes 1
  int active = 1;           ///< of these, at least one
  int slow = 0;             ///< of the active ones
  double slow_factor = 1;   ///< a slow device takes so many times as long, at least 1
  int shards_a_device = 0;  ///< of the whole job; 0: as fine as needed
  bool balanced = true;
};

/// In steps of the whole job.
[[nodiscard]] double step_time(const StepLoad& load);

}  // namespace lockstep::bench
