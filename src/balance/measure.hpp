// What each rank says of a step; it rides on the step's gathering of scalars.
#pragma once

#include <array>

namespace lockstep::balance {

/// Seconds of this step, by this rank's own clock. Only `compute` decides on shares: waiting says who is slow nowhere.
struct RankMeasure {
  double shards = 0;   ///< measured: its share, or 1 of a rank without a share that has tried one
  double compute = 0;  ///< kernels and adding sibling gradients, added over workers
  double typical = 0;  ///< the median shard's
  double data = 0;     ///< waiting for inputs, added over workers
  double reduce = 0;   ///< after its last shard: waiting for other ranks, and the exposed all-reduce
  double fixed = 0;    ///< the update of the step before
  double gpu = 0;      ///< a GpuCause; decides on nothing, but stands beside what was decided
  double joules = -1;  ///< that its GPU has drawn since the start; -1: not measured. Decides on nothing
};

inline constexpr int kMeasures = 8;
using MeasureValues = std::array<double, kMeasures>;

[[nodiscard]] inline MeasureValues to_values(const RankMeasure& m) {
  return {m.shards, m.compute, m.typical, m.data, m.reduce, m.fixed, m.gpu, m.joules};
}
[[nodiscard]] inline RankMeasure from_values(const double* v) {
  return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
}

}  // namespace lockstep::balance
