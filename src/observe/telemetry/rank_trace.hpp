// One rank's timeline as a file: JSON in the trace event format, which Perfetto and chrome://tracing open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/trace.hpp"

namespace lockstep::telemetry {

struct TimelineSpan {
  std::string name;
  int track = kPhaseTrack;  ///< see core/trace.hpp
  std::int64_t step = 0;    ///< from 1
  int item = -1;            ///< micro-batch or bucket
  double start = 0, end = 0;
  double kernels = -1;      ///< seconds of it inside kernels; -1: it is not compute
  std::int64_t bytes = -1;  ///< of a GPU's copy or fill; -1: none
  double seconds() const { return end - start; }
};

/// The measured offset of the rank's clock from rank 0's.
struct ClockSample {
  double at = 0, offset = 0, error = 0;  ///< on the rank's clock; offset to add for rank 0's; its largest error
};

struct RankTrace {
  int rank = 0, ranks = 1;
  std::string host;
  double run = 0;                   ///< the same for all ranks of one start
  std::size_t kernels = 0;          ///< number of kernels of a micro-batch
  std::vector<ClockSample> clocks;  ///< before the first and after the last span
  std::vector<TimelineSpan> spans;  ///< on the rank's clock
};

/// "<folder>/rank-3.json"
[[nodiscard]] std::string trace_path(const std::string& folder, int rank);

/// Overwrites the rank's file, creating the folder. Returns why it could not be written, or "".
[[nodiscard]] std::string write_trace(const std::string& folder, const RankTrace& trace);

/// All ranks' files, in order of the ranks. Throws Error(usage) if one is missing, is not a trace of a rank, or belongs
/// to another start.
[[nodiscard]] std::vector<RankTrace> read_traces(const std::string& folder);

/// Converts the spans to rank 0's clock: the offset is interpolated between the first sample and the last.
void align(RankTrace& trace);

}  // namespace lockstep::telemetry
