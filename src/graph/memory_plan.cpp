#include "graph/memory_plan.hpp"

#include <algorithm>
#include <numeric>

#include "core/round_up.hpp"

namespace lockstep {

namespace {
constexpr std::int64_t kAlignment = 256;  // cuBLASLt wants its workspaces so
}  // namespace

std::int64_t plan_memory(std::vector<Lifetime>& tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return tensors[a].bytes > tensors[b].bytes; });

  std::vector<std::size_t> placed;  // by offset
  std::int64_t arena = 0;
  for (const std::size_t index : order) {
    Lifetime& tensor = tensors[index];
    std::int64_t offset = 0;
    for (const std::size_t other_index : placed) {
      const Lifetime& other = tensors[other_index];
      if (other.last < tensor.first || tensor.last < other.first) continue;
      if (offset + tensor.bytes <= other.offset) break;
      offset = std::max(offset, other.offset + round_up(other.bytes, kAlignment));
    }
    tensor.offset = offset;
    arena = std::max(arena, offset + round_up(tensor.bytes, kAlignment));
    const auto by_offset = [&](std::size_t a, std::size_t b) { return tensors[a].offset < tensors[b].offset; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), index, by_offset), index);
  }
  return arena;
}

}  // namespace lockstep
