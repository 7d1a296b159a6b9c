// Makes the loader's batches: ids from the order, samples through the cache, tensors through the pipeline.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "data/loader.hpp"
#include "data/prefetch.hpp"

namespace lockstep::data {

/// Decoded samples kept in memory, within a budget that counts every byte asked for: the samples and the table that
/// finds them. Nothing is evicted: an epoch visits every sample once, so whatever stays is as good as any. load() and
/// store() may be called by several threads at once.
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

/// A batch's memory and what is needed while it is filled.
struct BatchBuffer {
  Batch batch;
  Sample sample;
  PipelineScratch scratch;
  std::vector<std::byte*> outputs;
};

/// Const members may be called by several threads at once, each with a buffer of its own.
class BatchMaker {
 public:
  BatchMaker(const DataSet& set, Pipeline pipeline, const LoaderOptions& options);
  [[nodiscard]] BatchBuffer make_buffer() const;
  [[nodiscard]] std::int64_t buffer_bytes() const;
  void fill(const ShardKey& key, BatchBuffer& buffer);
  [[nodiscard]] std::int64_t shard_samples() const { return shard_samples_; }
  [[nodiscard]] const std::vector<Feature>& features() const { return features_; }
  [[nodiscard]] std::int64_t cache_bytes() const { return cache_.bytes(); }

 private:
  const DataSet& set_;
  Pipeline pipeline_;
  bool drawn_;
  std::vector<Feature> features_;
  std::int64_t shard_samples_;
  std::unique_ptr<SampleOrder> order_;
  SampleCache cache_;
};

}  // namespace lockstep::data
