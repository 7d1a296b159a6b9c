// Mean and standard deviation of a data set's images, per channel, on the scale 0 ... 1, or of a table's numbers, per
// element, for `normalize: auto`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/index_notes.hpp"
#include "lockstep/data_set.hpp"

namespace lockstep::data {

struct ChannelStatistics {
  std::vector<double> mean, stddev;  ///< by channel, or element; empty: the set has neither images nor columns
};

struct StatisticsOptions {
  int threads = 1;
  /// For a larger set, this many samples are used, evenly spaced.
  std::int64_t max_samples = 65536;
  /// Where the result is noted, or already is; null: nowhere.
  IndexNotes* notes = nullptr;
};

/// Sums are of integers, so the result does not depend on threads or order. If the set provides statistics
/// (DataSetInfo::mean, stddev), these are returned. All images of a sample count together. A constant channel gets a
/// standard deviation of 1. Tables are read by one thread, in the order of their rows, without the values that
/// are missing; elements that stand for a category, or for a missing value, get a mean of 0 and a standard deviation
/// of 1.
[[nodiscard]] ChannelStatistics channel_statistics(const DataSet& set, const StatisticsOptions& options);

/// Mean and standard deviation of each number that is to be predicted of rows of a table, or of images, by feature; a
/// constant one gets a standard deviation of 1. Read by one thread, in the order of the samples. Other sets have none.
[[nodiscard]] std::map<std::string, ChannelStatistics> target_statistics(const DataSet& set);

}  // namespace lockstep::data
