// Decoded samples kept in memory, within a budget that counts every byte asked for: the samples and the table that
// finds them. Nothing is evicted: an epoch visits every sample once, so whatever stays is as good as any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/data_set.hpp"

namespace lockstep::data {

/// load() and store() may be called by several threads at once.
class SampleCache {
 public:
  SampleCache(const DataSet& set, std::int64_t budget_bytes);
  ~SampleCache();
  SampleCache(const SampleCache&) = delete;
  SampleCache& operator=(const SampleCache&) = delete;

  /// Copies the sample into `out`, reusing its memory; false if it is not here.
  [[nodiscard]] bool load(std::int64_t id, Sample& out) const;
  /// Keeps a copy, if the budget allows and nobody was faster.
  void store(std::int64_t id, const Sample& sample);
  [[nodiscard]] std::int64_t bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  const std::vector<Feature>& features_;
  std::int64_t budget_;
  std::atomic<std::int64_t> used_{0};
  std::vector<std::atomic<std::byte*>> blocks_;  ///< by id: for each tensor its dimensions as i64, then its bytes
};

}  // namespace lockstep::data
