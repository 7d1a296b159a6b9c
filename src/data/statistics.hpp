// Mean and standard deviation of a data set's images, per channel, on the scale 0 ... 1: what `normalize: auto` uses.
#pragma once

#include <cstdint>
#include <vector>

#include "data/index_notes.hpp"
#include "lockstep/data_set.hpp"

namespace lockstep::data {

struct ChannelStatistics {
  std::vector<double> mean, stddev;  ///< by channel; empty: the set has no images
};

struct StatisticsOptions {
  int threads = 1;
  /// A larger set is judged by this many samples, evenly spaced.
  std::int64_t max_samples = 65536;
  /// Where the result is noted, or was; null: nowhere.
  IndexNotes* notes = nullptr;
};

/// Sums are of integers, so the result does not depend on threads or order. What the set says of itself
/// (DataSetInfo::mean, stddev) is believed. All images of a sample count together. A channel that never
/// varies gets a standard deviation of 1.
[[nodiscard]] ChannelStatistics channel_statistics(const DataSet& set, const StatisticsOptions& options);

}  // namespace lockstep::data
