#include "step/optim/other_parts.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "comm/reduce/gradient_buckets.hpp"
#include "core/round_up.hpp"
#include "lockstep/error.hpp"

namespace lockstep::optim {

namespace {

constexpr int kFirstTag = 1 << 15;

/// The part's value for a parameter of the whole model; null if the part does not have it.
const Value* find(const GraphPart& part, std::size_t whole) {
  const auto found = std::lower_bound(part.parameters.begin(), part.parameters.end(), whole);
  if (found == part.parameters.end() || *found != whole) return nullptr;
  return &part.graph.at(part.graph.parameters[found - part.parameters.begin()]);
}

std::size_t chunks_of(const Value& parameter) {
  return divide_up<std::int64_t>(parameter.spec.elements(), comm::kChunkElements);
}

}  // namespace

std::vector<std::size_t> shared_weights(const std::vector<GraphPart>& parts, int own) {
  const GraphPart& mine = parts[own];
  std::vector<std::size_t> shared;
  for (std::size_t i = 0; i < mine.parameters.size(); ++i) {
    if (mine.graph.at(mine.graph.parameters[i]).frozen) continue;
    const bool elsewhere = std::any_of(parts.begin(), parts.end(), [&](const GraphPart& part) {
      return &part != &mine && find(part, mine.parameters[i]) != nullptr;
    });
    if (elsewhere) shared.push_back(i);
  }
  return shared;
}

OtherParts::OtherParts(const PlacedParts& placed, const Program& program) : placed_(placed), program_(program) {
  find_shared();
  find_chunks();
}

// In the order of the whole model's parameters, so that all ranks compute the same tags.
void OtherParts::find_shared() {
  // by parameter: (node of the whole graph, its part)
  std::map<std::size_t, std::vector<std::pair<std::int32_t, int>>> uses;
  for (std::size_t p = 0; p < placed_.parts.size(); ++p) {
    const GraphPart& part = placed_.parts[p];
    std::map<ValueId, std::size_t> whole;
    for (std::size_t i = 0; i < part.parameters.size(); ++i) whole[part.graph.parameters[i]] = part.parameters[i];
    for (std::size_t n = 0; n < part.nodes.size(); ++n) {
      for (const ValueId id : part.graph.nodes[n].parameters) {
        if (!part.graph.at(id).frozen) uses[whole.at(id)].emplace_back(part.nodes[n], static_cast<int>(p));
      }
    }
  }
  for (auto& [parameter, list] : uses) {
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const int first = list.front().second;
    if (std::all_of(list.begin(), list.end(), [&](const auto& use) { return use.second == first; })) continue;
    add_messages(parameter, list);
  }
}

void OtherParts::add_messages(std::size_t whole, const std::vector<std::pair<std::int32_t, int>>& uses) {
  const int first_tag = std::exchange(next_tag_, next_tag_ + static_cast<int>(uses.size()));
  const auto mine = std::find(own().parameters.begin(), own().parameters.end(), whole);
  if (mine == own().parameters.end()) return;
  SharedWeight& shared = shared_.emplace_back();
  shared.parameter = mine - own().parameters.begin();
  std::vector<std::size_t> slots;  // of own uses, in graph order, which is the reverse of slot order
  for (std::size_t s = program_.slots.size(); s-- > 0;) {
    const Slot& slot = program_.slots[s];
    if (slot.kind == Slot::Kind::gradient && static_cast<std::size_t>(slot.target) == shared.parameter) {
      slots.push_back(s);
    }
  }
  const auto ranks_of = [&](int part) -> const std::vector<int>& { return placed_.ranks[part]; };
  // A rank of one part exchanges with the rank at the same position in the other part.
  const auto& own_ranks = ranks_of(placed_.own);
  const std::size_t place =
      std::find(own_ranks.begin(), own_ranks.end(), placed_.communicator.rank()) - own_ranks.begin();
  std::vector<int> others;
  for (const auto& [node, part] : uses) {
    if (part != placed_.own && std::find(others.begin(), others.end(), part) == others.end()) others.push_back(part);
  }
  std::size_t own_uses = 0;
  for (std::size_t u = 0; u < uses.size(); ++u) {
    const int part = uses[u].second, tag = kFirstTag + first_tag + static_cast<int>(u);
    if (part != placed_.own) {
      shared.uses.push_back({false, sums_.size()});
      receives_.push_back({ranks_of(part)[place % ranks_of(part).size()], tag, sums_.size()});
      sums_.emplace_back(static_cast<std::size_t>(program_.slots[slots.front()].elements));
      continue;
    }
    for (const int other : others) {
      for (std::size_t r = 0; r < ranks_of(other).size(); ++r) {
        if (r % own_ranks.size() == place) sends_.push_back({ranks_of(other)[r], tag, slots.at(own_uses)});
      }
    }
    shared.uses.push_back({true, slots.at(own_uses++)});
  }
}

void OtherParts::exchange(std::uint64_t step, const std::function<std::span<const float>(std::size_t slot)>& sum_of) {
  if (shared_.empty()) return;
  const Operation operation{"gradients of shared weights", step, placed_.timeout};
  std::vector<std::unique_ptr<Transfer>> transfers;
  for (const Message& message : receives_) {
    transfers.push_back(placed_.communicator.receive(std::as_writable_bytes(std::span(sums_[message.number])),
                                                     message.rank, message.tag));
  }
  for (const Message& message : sends_) {
    const auto bytes = std::as_bytes(sum_of(message.number));
    transfers.push_back(placed_.communicator.send(bytes, message.rank, message.tag));
    bytes_sent_ += bytes.size();
  }
  for (const auto& transfer : transfers) transfer->wait(operation);
}

std::uint64_t OtherParts::bytes_of_exchange() const {
  std::uint64_t bytes = 0;
  for (const Message& message : sends_) {
    bytes += program_.slots[message.number].elements * sizeof(float);
  }
  return bytes;
}

void OtherParts::find_chunks() {
  std::size_t parameters = 0;
  for (const GraphPart& part : placed_.parts) {
    if (!part.parameters.empty()) parameters = std::max(parameters, part.parameters.back() + 1);
  }
  part_chunks_.resize(placed_.parts.size());
  for (std::size_t whole = 0; whole < parameters; ++whole) {
    bool known = false;
    for (std::size_t p = 0; p < placed_.parts.size(); ++p) {
      const Value* const value = find(placed_.parts[p], whole);
      if (value == nullptr || value->frozen) continue;
      const std::size_t count = chunks_of(*value), at = std::exchange(part_chunks_[p], part_chunks_[p] + count);
      if (known) continue;  // the first part that has it provides its values
      runs_.push_back({static_cast<int>(p), std::exchange(chunks_, chunks_ + count), at, count});
      known = true;
    }
  }
}

const std::vector<double>& OtherParts::gather(std::span<const double> own, std::uint64_t step) {
  const Operation operation{"norm of the gradient", step, placed_.timeout};
  LOCKSTEP_CHECK(own.size() == part_chunks_[static_cast<std::size_t>(placed_.own)], "a number for each chunk");
  whole_.resize(chunks_);
  std::vector<double> part;
  for (std::size_t p = 0; p < placed_.parts.size(); ++p) {
    part.resize(part_chunks_[p]);
    if (static_cast<int>(p) == placed_.own) std::copy(own.begin(), own.end(), part.begin());
    if (!part.empty()) {
      placed_.communicator.broadcast(std::as_writable_bytes(std::span(part)), placed_.ranks[p].front(), operation);
    }
    for (const Run& run : runs_) {
      if (run.part != static_cast<int>(p)) continue;
      std::copy_n(part.begin() + run.at_part, run.count, whole_.begin() + run.at_whole);
    }
  }
  return whole_;
}

}  // namespace lockstep::optim
