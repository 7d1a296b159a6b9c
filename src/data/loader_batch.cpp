#include "data/loader_batch.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

TensorSpec batched(const Feature& feature, std::int64_t samples) {
  TensorSpec spec = feature.spec;
  spec.shape.insert(spec.shape.begin(), samples);
  return spec;
}

}  // namespace

BatchMaker::BatchMaker(const DataSet& set, Pipeline pipeline, const LoaderOptions& options)
    : set_(set),
      pipeline_(std::move(pipeline)),
      drawn_(options.drawn),
      features_(drawn_ ? pipeline_.drawn() : pipeline_.outputs()),
      shard_samples_(options.shards > 0 ? options.batch / options.shards : 0),
      cache_(set, drawn_ ? 0 : options.cache_bytes) {
  LOCKSTEP_CHECK(shard_samples_ > 0 && options.batch % options.shards == 0,
                 fmt::format("a batch of {} in {} shards", options.batch, options.shards));
  order_ = options.training ? make_training_order(set.size(), options.batch, options.shards, options.seed)
                            : make_evaluation_order(set.size());
}

BatchBuffer BatchMaker::make_buffer() const {
  BatchBuffer buffer;
  buffer.batch.ids.resize(static_cast<std::size_t>(shard_samples_));
  for (const Feature& feature : features()) {
    buffer.batch.tensors.push_back({feature.name, Tensor(batched(feature, shard_samples_))});
  }
  buffer.outputs.resize(features().size());
  return buffer;
}

std::int64_t BatchMaker::buffer_bytes() const {
  std::size_t bytes = 0;
  for (const Feature& feature : features()) bytes += batched(feature, shard_samples_).bytes();
  return static_cast<std::int64_t>(bytes);
}

void BatchMaker::fill(const ShardKey& key, BatchBuffer& buffer) {
  Batch& batch = buffer.batch;
  batch.valid = order_->ids(key.step, key.shard, batch.ids);
  const std::uint64_t epoch = order_->epoch_of(key.step);
  for (std::size_t i = 0; i < batch.ids.size(); ++i) {
    const std::int64_t id = batch.ids[i];
    for (std::size_t k = 0; k < features_.size(); ++k) {
      buffer.outputs[k] = batch.tensors[k].tensor.bytes() + i * features_[k].spec.bytes();
    }
    if (drawn_) {
      pipeline_.draw(id, epoch, buffer.outputs);
      continue;
    }
    if (!cache_.load(id, buffer.sample)) {
      set_.read_variant(id, order_->variant_of(epoch), buffer.sample);
      cache_.store(id, buffer.sample);
    }
    pipeline_.run(buffer.sample, id, epoch, buffer.scratch, buffer.outputs);
  }
}

}  // namespace lockstep::data
