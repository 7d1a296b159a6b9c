#include "data/sample_cache.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace lockstep::data {

namespace {

constexpr std::int64_t kEntryBytes = sizeof(std::atomic<std::byte*>);

/// Not for windows of text, which change with the epoch, and are only copied when read.
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
  if (bytes == 0) return;  // the shape of a scalar is empty and has no address
  std::memcpy(to, from, bytes);
  to += bytes;
}

/// Reads the dimensions at `from` and gives them to `tensor`, unless it has them already. Returns the number of bytes
/// read.
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

}  // namespace

SampleCache::SampleCache(const DataSet& set, std::int64_t budget_bytes)
    : features_(set.info().features), budget_(budget_bytes) {
  const std::int64_t table = set.size() * kEntryBytes;
  if (table > budget_bytes || !worth_keeping(set)) return;
  blocks_ = std::vector<std::atomic<std::byte*>>(set.size());
  used_ = table;
}

SampleCache::~SampleCache() {
  for (auto& block : blocks_) delete[] block.load();
}

bool SampleCache::load(std::int64_t id, Sample& out) const {
  if (blocks_.empty()) return false;
  const std::byte* from = blocks_[id].load(std::memory_order_acquire);
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
  auto& block = blocks_[id];
  if (block.load(std::memory_order_relaxed) != nullptr) return;
  const std::size_t bytes = block_bytes(sample);
  const std::int64_t size = bytes;
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

}  // namespace lockstep::data
