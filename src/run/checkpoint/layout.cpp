#include "run/checkpoint/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/transport/topology.hpp"
#include "run/checkpoint/safetensors.hpp"

namespace lockstep::checkpoint {

namespace {

constexpr std::int64_t kMaxParts = 256;
constexpr std::int64_t kElementBytes = sizeof(float);

TensorSource source_of(const WholeModel::Tensor& tensor, std::span<const float> values) {
  std::vector<Holding> holdings = tensor.holdings;
  if (holdings.empty() && !tensor.ranks.empty()) holdings = {{{0, elements(tensor.shape)}, tensor.ranks}};
  return {tensor.name, tensor.shape, values, false, std::move(holdings)};
}

void add_tensors(const std::vector<WholeModel::Tensor>& tensors, const exec::TensorBlock& own,
                 std::vector<TensorSource>& list) {
  const auto values = own_values(tensors, own);
  for (std::size_t i = 0; i < tensors.size(); ++i) list.push_back(source_of(tensors[i], values[i]));
}

// Ranks may divide states in their parameter's shape, and no others.
void add_states(std::vector<WholeModel::Tensor> parameters, const exec::TensorBlock& own,
                const optim::OptimizerState& state, std::vector<TensorSource>& list) {
  for (auto& tensor : parameters) {
    const Shape shape = state.shape(tensor.shape);
    tensor.holdings = shape == tensor.shape ? tensor.state_holdings : std::vector<Holding>();
    tensor.shape = shape;
  }
  const auto values = own_values(parameters, own);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (state.is_missing(parameters[i].shape)) continue;
    TensorSource& source = list.emplace_back(source_of(parameters[i], values[i]));
    source.name += ":" + state.name;
    source.optimizer = true;
  }
}

std::int64_t size(const TensorSource& tensor) {
  return elements(tensor.shape);
}

/// Fills one file after another.
class Cutter {
 public:
  explicit Cutter(std::int64_t max_bytes)
      : max_elements_(std::max<std::int64_t>(max_bytes / kElementBytes / comm::kChunkElements, 1) *
                      comm::kChunkElements) {}

  void add(std::size_t tensor, std::int64_t elements) {
    if (parts_.empty() || (filled_ > 0 && filled_ + elements > max_elements_)) next();
    for (std::int64_t begin = 0; begin == 0 || begin < elements; begin += max_elements_) {
      if (begin > 0) next();
      const std::int64_t end = std::min(begin + max_elements_, elements);
      parts_.back().pieces.push_back({.tensor = tensor, .begin = begin, .end = end});
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
  Cutter cutter(std::max(part_bytes, total / kMaxParts + comm::kChunkElements * kElementBytes));
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
    part.bytes += ((piece.end - piece.begin) * kElementBytes);
  }
}

/// The ranks, ordered so that neighbours in the list are on different hosts.
std::vector<int> ranks_in_turn(const Topology& topology) {
  std::vector<int> ranks(topology.host_of.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const comm::Hosts hosts(topology);
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return hosts.local_rank(a) < hosts.local_rank(b); });
  return ranks;
}

/// Calls call(extent, ranks) for the elements that each holding has of a piece.
template <class Call>
void for_each_holding(const TensorSource& tensor, const PartPiece& piece, const Call& call) {
  for (const Holding& holding : tensor.holdings) {
    const exec::Extent extent{std::max(piece.begin, holding.extent.begin), std::min(piece.end, holding.extent.end)};
    if (extent.begin < extent.end) call(extent, holding.ranks);
  }
}

/// By rank: whether no other rank has more of the file.
std::vector<bool> have_most(const std::vector<TensorSource>& tensors, const Part& part, std::size_t ranks) {
  std::vector<std::int64_t> elements(ranks);
  for (const auto& piece : part.pieces) {  // tensors that all ranks have make no difference
    for_each_holding(tensors[piece.tensor], piece, [&](const exec::Extent& extent, const std::vector<int>& having) {
      for (const int rank : having) elements.at(rank) += extent.end - extent.begin;
    });
  }
  const std::int64_t most = *std::max_element(elements.begin(), elements.end());
  std::vector<bool> have(ranks);
  std::transform(elements.begin(), elements.end(), have.begin(), [&](auto count) { return count == most; });
  return have;
}

std::vector<PartPiece::Source> sources_of(const TensorSource& tensor, const PartPiece& piece, int writer) {
  if (tensor.holdings.empty()) return {{{piece.begin, piece.end}, writer}};
  std::vector<PartPiece::Source> sources;
  for_each_holding(tensor, piece, [&](const exec::Extent& extent, const std::vector<int>& having) {
    sources.push_back({extent, has(having, writer) ? writer : first_of(having)});
  });
  return sources;
}

void choose_ranks(const std::vector<TensorSource>& tensors, const Topology& topology, std::vector<Part>& parts) {
  std::vector<std::size_t> bytes;
  std::vector<std::vector<bool>> may_take;
  for (const auto& part : parts) {
    bytes.push_back(part.bytes);
    may_take.push_back(have_most(tensors, part, topology.host_of.size()));
  }
  const auto ranks = share_out(bytes, topology, [&](std::size_t file, int rank) { return may_take[file][rank]; });
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].rank = ranks[i];
    for (auto& piece : parts[i].pieces) piece.sources = sources_of(tensors[piece.tensor], piece, ranks[i]);
  }
}

}  // namespace

std::vector<TensorSource> sources_of(const WholeModel& whole, const optim::Model& own,
                                     const std::vector<optim::OptimizerState>& states) {
  std::vector<TensorSource> list;
  add_tensors(whole.parameters, own.parameters, list);
  add_tensors(whole.states, own.states, list);
  for (std::size_t s = 0; s < states.size(); ++s) add_states(whole.parameters, own.optimizer[s], states[s], list);
  return list;
}

std::vector<TensorSource> sources_of(const optim::Model& model, const std::vector<optim::OptimizerState>& states) {
  return sources_of(whole_of(model), model, states);
}

std::vector<int> share_out(const std::vector<std::size_t>& bytes, const Topology& topology,
                           const std::function<bool(std::size_t, int)>& may_take) {
  const std::vector<int> ranks = ranks_in_turn(topology);
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return bytes[a] > bytes[b]; });
  std::vector<std::size_t> load(ranks.size());
  std::vector<int> takes(bytes.size());
  for (const auto i : order) {
    auto least = ranks.size();
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (may_take && !may_take(i, ranks[r])) continue;
      if (least == ranks.size() || load[r] < load[least]) least = r;
    }
    takes[i] = ranks.at(least);
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
  for (auto& part : parts) lay_out(tensors, part);
  choose_ranks(tensors, topology, parts);
  return parts;
}

}  // namespace lockstep::checkpoint
