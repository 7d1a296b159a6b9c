// Fills one batch: ids from the order, samples through the cache, tensors through the pipeline.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/loader.hpp"
#include "data/loader_cache.hpp"
#include "data/loader_schedule.hpp"

namespace lockstep::data {

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
  [[nodiscard]] bool drawn() const { return drawn_; }
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
