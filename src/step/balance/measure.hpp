// What each rank reports about a step, together with the step's scalars.
#pragma once

#include <array>

namespace lockstep::balance {

/// Seconds of this step, by this rank's own clock. Only `compute` decides on shares: waiting times do not tell who is
/// slow.
struct RankMeasure {
  double micro_batches =
      0;               ///< number of micro-batches measured: its share, or 1 if a rank without a share has tried one
  double compute = 0;  ///< in kernels and adding sibling gradients, summed over workers
  double typical = 0;  ///< of the median micro-batch
  double data = 0;     ///< waiting for inputs, summed over workers
  double reduce = 0;   ///< after its last micro-batch: waiting for other ranks, and the exposed all-reduce
  double fixed = 0;    ///< the previous step's update
  double gpu = 0;      ///< a GpuCause; influences no decision, but is reported with it
  double joules = -1;  ///< energy that its GPU has used since the start; -1: not measured. Influences no decision
};

inline constexpr int kMeasures = 8;
using MeasureValues = std::array<double, kMeasures>;

[[nodiscard]] inline MeasureValues to_values(const RankMeasure& m) {
  return {m.micro_batches, m.compute, m.typical, m.data, m.reduce, m.fixed, m.gpu, m.joules};
}
[[nodiscard]] inline RankMeasure from_values(const double* v) {
  return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
}

}  // namespace lockstep::balance
