// Decoded samples kept in memory, within a budget that counts every allocated byte: the samples and their lookup table.
// Nothing is evicted: an epoch visits every sample once, so no choice is better than another.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/data_set.hpp"

namespace lockstep::data {

/// load() and store() are thread-safe.
class SampleCache {
 public:
  SampleCache(const DataSet& set, std::int64_t budget_bytes);
  ~SampleCache();
  SampleCache(const SampleCache&) = delete;
  SampleCache& operator=(const SampleCache&) = delete;

  /// Copies the sample into `out`, reusing its memory; returns false if it is not cached.
  bool load(std::int64_t id, Sample& out) const;
  /// Stores a copy, if the budget allows and no other thread was faster.
  void store(std::int64_t id, const Sample& sample);
  std::int64_t bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  const std::vector<Feature>& features_;
  std::int64_t budget_;
  std::atomic<std::int64_t> used_{0};
  std::vector<std::atomic<std::byte*>> blocks_;  ///< by id: for each tensor its dimensions as i64, then its bytes
};

}  // namespace lockstep::data
