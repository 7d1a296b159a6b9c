// What limits the steps of a run: the critical path through the timelines of all ranks, and the verdict on it, with the
// evidence and advice.
//
// The critical rank of a step is the one that reached the all-reduce last. The path consists of its last worker's
// waiting for data and computing (and, for a model in parts, waiting for other parts), the exposed part of the
// all-reduce, and the update. What lies between these (waking workers, calling kernels, the loop around it) is the cost
// of launching work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/telemetry/rank_trace.hpp"

namespace lockstep::telemetry {

/// Seconds of one step.
struct PathStep {
  std::int64_t step = 0;
  int rank = 0;        ///< the critical rank
  double seconds = 0;  ///< until the next step begins, without evaluation and checkpoint; the sum of the following:
  double data = 0;     ///< waiting for input
  double parts = 0;    ///< waiting for other parts of the model
  double compute = 0;  ///< up to the mean over the ranks: in kernels, and adding gradients
  double excess = 0;   ///< the critical rank's compute beyond the mean
  double launch = 0;   ///< between spans, and in micro-batches outside kernels
  double reduce = 0;   ///< the part that compute does not hide
  double update = 0;
  std::vector<TimelineSpan> spans;  ///< the path, in order of time; none overlap
};

/// For the steps that every rank has traced completely. `traces` must be aligned, one per rank.
[[nodiscard]] std::vector<PathStep> critical_path(const std::vector<RankTrace>& traces);

enum class Bound : std::uint8_t { compute, input, parts, reduce, imbalance, launch };

struct Diagnosis {
  Bound bound = Bound::compute;
  /// Fractions of the steps' time, 0 ... 1, see PathStep.
  double compute = 0, input = 0, parts = 0, reduce = 0, imbalance = 0, launch = 0, update = 0;
  int rank = 0;          ///< the rank that is critical most often
  double seconds = 0;    ///< mean duration of a step
  double kernel = 0;     ///< mean seconds of a kernel
  std::string sentence;  ///< the verdict, the evidence, and advice
};

/// Finds the largest part other than compute, if it is at least a fifth of the time; else the steps are compute-bound.
/// `path` must not be empty.
[[nodiscard]] Diagnosis diagnose(const std::vector<PathStep>& path, const std::vector<RankTrace>& traces);

/// The file in which `lockstep trace merge` leaves the sentence for the report: <folder>/diagnosis.txt, one line.
[[nodiscard]] std::string diagnosis_path(const std::string& folder);

}  // namespace lockstep::telemetry
