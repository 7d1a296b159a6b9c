#include "data/loader_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

constexpr std::int64_t kEntryBytes = sizeof(std::atomic<std::byte*>);

/// Windows of text change with the epoch, and reading them is a copy anyway.
bool worth_keeping(const DataSet& set) {
  const auto& features = set.info().features;
  return std::none_of(features.begin(), features.end(),
                      [](const Feature& feature) { return feature.kind == Feature::Kind::tokens; });
}

std::size_t block_bytes(const Sample& sample) {
  std::size_t bytes = 0;
  for (const NamedTensor& part : sample) {
    bytes += part.tensor.shape().size() * sizeof(std::int64_t) + part.tensor.spec().bytes();
  }
  return bytes;
}

void put_bytes(std::byte*& to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;  // of a scalar's shape, which has no address
  std::memcpy(to, from, bytes);
  to += bytes;
}

/// Reads the dimensions at `from` and makes `tensor` so, unless it is already. Returns the bytes read.
std::size_t give_shape(const TensorSpec& declared, const std::byte* from, Tensor& tensor) {
  const std::size_t bytes = declared.shape.size() * sizeof(std::int64_t);
  const Shape& now = tensor.shape();
  const bool same = tensor.bytes() != nullptr && tensor.dtype() == declared.dtype &&
                    now.size() == declared.shape.size() && (bytes == 0 || std::memcmp(now.data(), from, bytes) == 0);
  if (same) return bytes;
  Shape shape(declared.shape.size());
  if (bytes > 0) std::memcpy(shape.data(), from, bytes);
  tensor = Tensor({declared.dtype, std::move(shape)});
  return bytes;
}

TensorSpec batched(const Feature& feature, std::int64_t samples) {
  TensorSpec spec = feature.spec;
  spec.shape.insert(spec.shape.begin(), samples);
  return spec;
}

}  // namespace

SampleCache::SampleCache(const DataSet& set, std::int64_t budget_bytes)
    : features_(set.info().features), budget_(budget_bytes) {
  const std::int64_t table = set.size() * kEntryBytes;
  if (table > budget_bytes || !worth_keeping(set)) return;
  blocks_ = std::vector<std::atomic<std::byte*>>(static_cast<std::size_t>(set.size()));
  used_ = table;
}

SampleCache::~SampleCache() {
  for (auto& block : blocks_) delete[] block.load();
}

bool SampleCache::load(std::int64_t id, Sample& out) const {
  if (blocks_.empty()) return false;
  const std::byte* from = blocks_[static_cast<std::size_t>(id)].load(std::memory_order_acquire);
  if (from == nullptr) return false;
  out.resize(features_.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i].name != features_[i].name) out[i].name = features_[i].name;
    from += give_shape(features_[i].spec, from, out[i].tensor);
    std::memcpy(out[i].tensor.bytes(), from, out[i].tensor.spec().bytes());
    from += out[i].tensor.spec().bytes();
  }
  return true;
}

void SampleCache::store(std::int64_t id, const Sample& sample) {
  if (blocks_.empty()) return;
  auto& block = blocks_[static_cast<std::size_t>(id)];
  if (block.load(std::memory_order_relaxed) != nullptr) return;
  const std::size_t bytes = block_bytes(sample);
  const auto size = static_cast<std::int64_t>(bytes);
  if (used_.fetch_add(size, std::memory_order_relaxed) + size > budget_) {
    used_.fetch_sub(size, std::memory_order_relaxed);
    return;
  }
  auto copied = std::make_unique<std::byte[]>(bytes);
  std::byte* to = copied.get();
  for (const NamedTensor& part : sample) {
    put_bytes(to, part.tensor.shape().data(), part.tensor.shape().size() * sizeof(std::int64_t));
    put_bytes(to, part.tensor.bytes(), part.tensor.spec().bytes());
  }
  std::byte* expected = nullptr;
  if (block.compare_exchange_strong(expected, copied.get(), std::memory_order_release)) {
    static_cast<void>(copied.release());
  } else {
    used_.fetch_sub(size, std::memory_order_relaxed);
  }
}

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
