// A verdict on what limits the steps of a run, with the evidence and advice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "telemetry/critical_path.hpp"

namespace lockstep::telemetry {

enum class Bound : std::uint8_t { compute, input, reduce, imbalance, launch };

struct Diagnosis {
  Bound bound = Bound::compute;
  /// Parts of the steps' time, 0 ... 1, as PathStep has them.
  double compute = 0, input = 0, reduce = 0, imbalance = 0, launch = 0, update = 0;
  int rank = 0;          ///< that is critical most often
  double seconds = 0;    ///< of a step, mean
  double kernel = 0;     ///< mean seconds of a kernel
  std::string sentence;  ///< the verdict, the evidence, and advice
};

/// The largest part that is not computing, if it is at least a fifth of the time; else the steps are compute-bound.
/// `path` is not empty.
[[nodiscard]] Diagnosis diagnose(const std::vector<PathStep>& path, const std::vector<RankTrace>& traces);

/// The file that `lockstep trace merge` writes for the report: <folder>/diagnosis.txt, the sentence as a line.
[[nodiscard]] std::string diagnosis_path(const std::string& folder);

}  // namespace lockstep::telemetry
