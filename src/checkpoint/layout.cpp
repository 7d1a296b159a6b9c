#include "checkpoint/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "checkpoint/safetensors.hpp"
#include "comm/transport/hosts.hpp"

namespace lockstep::checkpoint {

namespace {

constexpr std::int64_t kChunk = 4096;  ///< elements
constexpr std::int64_t kMaxParts = 256;
constexpr auto kElementBytes = static_cast<std::int64_t>(sizeof(float));

void add_block(const exec::TensorBlock& block, const std::string& suffix, bool optimizer,
               std::vector<TensorSource>& list) {
  for (std::size_t i = 0; i < block.size(); ++i) {
    list.push_back({block.name(i) + suffix, block.shape(i), block.at(i), optimizer});
  }
}

std::int64_t size(const TensorSource& tensor) {
  return static_cast<std::int64_t>(tensor.values.size());
}

/// Fills files one after the other.
class Cutter {
 public:
  explicit Cutter(std::int64_t max_bytes)
      : max_elements_(std::max<std::int64_t>(max_bytes / kElementBytes / kChunk, 1) * kChunk) {}

  void add(std::size_t tensor, std::int64_t elements) {
    if (parts_.empty() || (filled_ > 0 && filled_ + elements > max_elements_)) next();
    for (std::int64_t begin = 0; begin == 0 || begin < elements; begin += max_elements_) {
      if (begin > 0) next();
      const std::int64_t end = std::min(begin + max_elements_, elements);
      parts_.back().pieces.push_back({tensor, begin, end, 0});
      filled_ += end - begin;
    }
  }
  [[nodiscard]] std::vector<Part> take() { return std::move(parts_); }

 private:
  void next() {
    parts_.emplace_back();
    filled_ = 0;
  }
  std::int64_t max_elements_, filled_ = 0;
  std::vector<Part> parts_;
};

std::vector<Part> cut(const std::vector<TensorSource>& tensors, bool optimizer, std::int64_t part_bytes) {
  std::int64_t total = 0;
  for (const auto& tensor : tensors) total += tensor.optimizer == optimizer ? size(tensor) * kElementBytes : 0;
  Cutter cutter(std::max(part_bytes, total / kMaxParts + kChunk * kElementBytes));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].optimizer == optimizer) cutter.add(i, size(tensors[i]));
  }
  return cutter.take();
}

void name_parts(const char* kind, std::vector<Part>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].file = parts.size() == 1 ? fmt::format("{}.safetensors", kind)
                                      : fmt::format("{}-{:05}-of-{:05}.safetensors", kind, i + 1, parts.size());
  }
}

void lay_out(const std::vector<TensorSource>& tensors, Part& part) {
  std::vector<NamedShape> entries;
  for (const auto& piece : part.pieces) {
    const TensorSource& tensor = tensors[piece.tensor];
    const bool whole = piece.end - piece.begin == size(tensor);
    entries.push_back({whole ? tensor.name : slice_name(tensor.name, piece.begin, piece.end),
                       whole ? tensor.shape : Shape{piece.end - piece.begin}});
  }
  part.header = safetensors_header(entries, {{"format", "lockstep"}});
  part.bytes = part.header.size();
  for (auto& piece : part.pieces) {
    piece.offset = part.bytes;
    part.bytes += static_cast<std::size_t>((piece.end - piece.begin) * kElementBytes);
  }
}

/// Ranks, so that neighbours in the list sit on different hosts.
std::vector<int> ranks_in_turn(const Topology& topology) {
  std::vector<int> ranks(topology.host_of.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const comm::Hosts hosts(topology);
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return hosts.local_rank(a) < hosts.local_rank(b); });
  return ranks;
}

}  // namespace

std::vector<TensorSource> sources_of(const optim::Model& model, const std::vector<std::string>& state_names) {
  std::vector<TensorSource> list;
  add_block(model.parameters, "", false, list);
  add_block(model.states, "", false, list);
  for (std::size_t s = 0; s < state_names.size(); ++s) add_block(model.optimizer[s], ":" + state_names[s], true, list);
  return list;
}

std::vector<int> share_out(const std::vector<std::size_t>& bytes, const Topology& topology) {
  const std::vector<int> ranks = ranks_in_turn(topology);
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return bytes[a] > bytes[b]; });
  std::vector<std::size_t> load(ranks.size());
  std::vector<int> takes(bytes.size());
  for (const auto i : order) {
    const auto least = static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    takes[i] = ranks[least];
    load[least] += bytes[i];
  }
  return takes;
}

std::vector<Part> plan_parts(const std::vector<TensorSource>& tensors, std::int64_t part_bytes,
                             const Topology& topology) {
  std::vector<Part> parts = cut(tensors, false, part_bytes), optimizer = cut(tensors, true, part_bytes);
  name_parts("model", parts);
  name_parts("optimizer", optimizer);
  std::move(optimizer.begin(), optimizer.end(), std::back_inserter(parts));
  std::vector<std::size_t> bytes;
  for (auto& part : parts) {
    lay_out(tensors, part);
    bytes.push_back(part.bytes);
  }
  const auto ranks = share_out(bytes, topology);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].rank = ranks[i];
  return parts;
}

}  // namespace lockstep::checkpoint
