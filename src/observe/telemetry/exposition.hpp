// Converts RankMetrics to prometheus-cpp's types, and to text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "observe/telemetry/rank_metrics.hpp"

namespace prometheus {  // NOLINT(readability-identifier-naming): another library's
struct MetricFamily;
}

namespace lockstep::telemetry {

/// All metrics with a value, or those of one scope; each series has the label `rank`.
[[nodiscard]] std::vector<prometheus::MetricFamily> families_of(const RankMetrics& metrics, int rank,
                                                                std::optional<MetricScope> scope = {});

/// The job's metrics in the text format, for the node exporter's textfile collector; each series has these labels, too,
/// since there is no scrape target that would add them.
[[nodiscard]] std::string snapshot_text(const RankMetrics& metrics, int rank, const MetricLabels& labels);

}  // namespace lockstep::telemetry
