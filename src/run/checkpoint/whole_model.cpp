#include "run/checkpoint/whole_model.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>

#include "comm/transport/messages.hpp"
#include "comm/transport/work_together.hpp"
#include "core/digest.hpp"
#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

constexpr int kHashTag = 82;  // for tensors, to the rank that hashes them

std::vector<WholeModel::Tensor> tensors_of(const exec::TensorBlock& block) {
  std::vector<WholeModel::Tensor> tensors;
  for (std::size_t i = 0; i < block.size(); ++i) tensors.push_back({block.name(i), block.shape(i)});
  return tensors;
}

std::vector<WholeModel::Tensor> tensors_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<WholeModel::Tensor> tensors;
  for (const ValueId id : ids) tensors.push_back({graph.at(id).name, graph.at(id).spec.shape});
  return tensors;
}

/// `list`: a part's tensors, as indices into the whole model's list.
void place(std::vector<WholeModel::Tensor>& tensors, const std::vector<GraphPart>& parts,
           std::vector<std::size_t> GraphPart::*list, const std::vector<std::vector<int>>& ranks) {
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (const auto i : parts[p].*list) {
      auto& having = tensors.at(i).ranks;
      having.insert(having.end(), ranks.at(p).begin(), ranks.at(p).end());
    }
  }
  for (auto& tensor : tensors) {
    LOCKSTEP_CHECK(!tensor.ranks.empty(), tensor.name);
    std::sort(tensor.ranks.begin(), tensor.ranks.end());
    tensor.ranks.erase(std::unique(tensor.ranks.begin(), tensor.ranks.end()), tensor.ranks.end());
  }
}

/// A tensor to be hashed, and this rank's values of it.
struct HashedTensor {
  std::size_t bytes = 0;
  int from = 0;
  std::span<const std::byte> own;  ///< empty on a rank that does not have it
};

std::vector<HashedTensor> in_order_of_name(const std::vector<WholeModel::Tensor>& tensors,
                                           const exec::TensorBlock& own) {
  const auto values = own_values(tensors, own);
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return tensors[a].name < tensors[b].name; });
  std::vector<HashedTensor> hashed;
  for (const auto i : order) {
    const WholeModel::Tensor& tensor = tensors[i];
    const std::vector<Holding> all = {{{0, elements(tensor.shape)}, tensor.ranks}};
    for (const auto& [extent, ranks] : tensor.holdings.empty() ? all : tensor.holdings) {
      const std::size_t first = extent.begin, count = extent.end - first;
      hashed.push_back(
          {count * sizeof(float), first_of(ranks),
           values[i].empty() ? std::span<const std::byte>() : std::as_bytes(values[i].subspan(first, count))});
    }
  }
  return hashed;
}

std::string hash_all(const std::vector<HashedTensor>& tensors, Communicator& communicator, const Operation& operation,
                     comm::WorkProgress& progress) {
  Sha256 hash;
  std::vector<std::byte> received;
  for (const auto& tensor : tensors) {
    if (tensor.from == 0) {
      comm::in_messages(tensor.own, [&](auto bytes) {
        hash.add(bytes);
        progress.advance();
      });
      continue;
    }
    received.resize(std::min(std::max(received.size(), tensor.bytes), comm::kMessageBytes));
    for (std::size_t rest = tensor.bytes; rest > 0;) {
      const auto bytes = std::span(received).first(std::min(rest, comm::kMessageBytes));
      communicator.receive(bytes, tensor.from, kHashTag)->wait(operation);
      hash.add(bytes);
      progress.advance();
      rest -= bytes.size();
    }
  }
  return hash.hex();
}

/// Elements of a parameter of the whole model, and the rank that keeps their optimizer state; if `divided`, also the
/// elements.
struct OwnedSlice {
  std::int64_t parameter, begin, end, rank, divided;
};

/// `part`: the part that the slices are of; null: the whole model.
std::vector<OwnedSlice> slices_of(const optim::ModelSlices& own, const GraphPart* part) {
  std::vector<OwnedSlice> slices;
  for (std::size_t i = 0; i < own.owned().size(); ++i) {
    const std::int64_t parameter = part == nullptr ? i : part->parameters[i];
    for (const auto& [extent, owner] : own.owned()[i]) {
      slices.push_back({parameter, extent.begin, extent.end, own.number_of(owner), own.divides_parameters() ? 1 : 0});
    }
  }
  return slices;
}

/// If several parts share a weight, the first part saves its states.
void note(const std::vector<OwnedSlice>& slices, WholeModel& whole) {
  std::map<std::int64_t, std::vector<Holding>> of_part;
  for (const OwnedSlice& slice : slices) {
    of_part[slice.parameter].push_back({{slice.begin, slice.end}, {static_cast<int>(slice.rank)}});
  }
  const bool divided = !slices.empty() && slices.front().divided != 0;
  for (auto& [parameter, holdings] : of_part) {
    auto& tensor = whole.parameters.at(parameter);
    if (tensor.state_holdings.empty()) tensor.state_holdings = holdings;
    if (divided && tensor.holdings.empty()) tensor.holdings = std::move(holdings);
  }
}

}  // namespace

WholeModel whole_of(const Graph& graph, const std::vector<GraphPart>& parts,
                    const std::vector<std::vector<int>>& ranks) {
  WholeModel whole{tensors_of(graph, graph.parameters), tensors_of(graph, graph.states)};
  if (parts.empty()) return whole;
  place(whole.parameters, parts, &GraphPart::parameters, ranks);
  place(whole.states, parts, &GraphPart::states, ranks);
  return whole;
}

// Each part's first rank broadcasts them, since only the part's own ranks know how its gradient is cut.
void note_slices(WholeModel& whole, const optim::ModelSlices* own, const std::vector<GraphPart>& parts,
                 const std::vector<std::vector<int>>& ranks, Communicator& communicator,
                 std::chrono::milliseconds timeout) {
  const Operation operation{"slices of parameters", 0, timeout};
  for (std::size_t p = 0; p < ranks.size(); ++p) {
    const bool mine = own != nullptr && has(ranks[p], communicator.rank());
    std::vector<OwnedSlice> said =
        mine ? slices_of(*own, parts.empty() ? nullptr : &parts[p]) : std::vector<OwnedSlice>();
    if (ranks.size() > 1) {
      std::uint64_t count = said.size();
      communicator.broadcast(std::as_writable_bytes(std::span(&count, 1)), ranks[p].front(), operation);
      said.resize(count);
      if (count > 0) communicator.broadcast(std::as_writable_bytes(std::span(said)), ranks[p].front(), operation);
    }
    note(said, whole);
  }
}

WholeModel whole_of(const optim::Model& model) {
  return {tensors_of(model.parameters), tensors_of(model.states)};
}

bool has(const std::vector<int>& ranks, int rank) {
  return ranks.empty() || std::binary_search(ranks.begin(), ranks.end(), rank);
}

std::vector<std::span<float>> own_values(const std::vector<WholeModel::Tensor>& tensors, const exec::TensorBlock& own) {
  std::map<std::string, std::size_t> entries;
  for (std::size_t i = 0; i < own.size(); ++i) entries[own.name(i)] = i;
  std::vector<std::span<float>> values;
  std::size_t found = 0;
  for (const auto& tensor : tensors) {
    const auto entry = entries.find(tensor.name);
    if (entry != entries.end()) {
      LOCKSTEP_CHECK(own.shape(entry->second) == tensor.shape, tensor.name);
      ++found;
    }
    values.push_back(entry == entries.end() ? std::span<float>() : own.at(entry->second));
  }
  LOCKSTEP_CHECK(found == own.size(), "a part has tensors of the whole model, and no others");
  return values;
}

// Sends wait for rank 0 while it hashes, which has no deadline; when it has finished, they are done. Rank 0's receives
// run beside the collectives of work_together(), on any thread.
std::string parameters_sha256(const WholeModel& whole, const exec::TensorBlock& own, Communicator& communicator,
                              std::chrono::milliseconds timeout) {
  const Operation operation{"parameters sha256", 0, timeout};
  const auto tensors = in_order_of_name(whole.parameters, own);
  std::vector<std::unique_ptr<Transfer>> sent;
  for (const auto& tensor : tensors) {
    if (tensor.from == 0 || tensor.from != communicator.rank()) continue;
    comm::in_messages(tensor.own, [&](auto bytes) { sent.push_back(communicator.send(bytes, 0, kHashTag)); });
  }
  std::array<char, 64> text{};
  (void)comm::work_together(communicator, operation, [&](comm::WorkProgress& progress) {
    if (communicator.rank() != 0) return false;
    const std::string hash = hash_all(tensors, communicator, operation, progress);
    std::copy_n(hash.begin(), text.size(), text.begin());
    return true;
  });
  for (const auto& message : sent) message->wait(operation);
  communicator.broadcast(std::as_writable_bytes(std::span(text)), 0, operation);
  return {text.data(), text.size()};
}

}  // namespace lockstep::checkpoint
