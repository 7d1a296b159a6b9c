// RankMetrics as prometheus-cpp knows them, and as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "telemetry/rank_metrics.hpp"

namespace prometheus {  // NOLINT(readability-identifier-naming): another library's
struct MetricFamily;
}

namespace lockstep::telemetry {

/// All metrics that have a number, each series with the label `rank`; or those of one scope.
[[nodiscard]] std::vector<prometheus::MetricFamily> families_of(const RankMetrics& metrics, int rank,
                                                                std::optional<MetricScope> scope = {});

/// The metrics of the job, for the textfile collector of the node exporter: in the text format, each series with these
/// labels too, since there is no target that would have them.
[[nodiscard]] std::string snapshot_text(const RankMetrics& metrics, int rank, const MetricLabels& labels);

}  // namespace lockstep::telemetry
