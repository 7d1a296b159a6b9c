#include "exec/gather_layout.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/round_up.hpp"
#include "graph/precision.hpp"
#include "lockstep/error.hpp"

namespace lockstep::exec {

namespace {

/// By parameter: in which forms the nodes of a graph read it.
struct Reads {
  bool float32 = false, low_precision = false;
};

std::vector<Reads> reads_of(const Graph& graph) {
  std::vector<Reads> by_value(graph.values.size());
  for (const Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.parameters.size(); ++i) {
      Reads& reads = by_value[static_cast<std::size_t>(node.parameters[i])];
      const bool low = node.low_precision_weights && is_low_precision_weight(graph, node, i);
      (low ? reads.low_precision : reads.float32) = true;
    }
  }
  std::vector<Reads> by_parameter;
  for (const ValueId id : graph.parameters) by_parameter.push_back(by_value[static_cast<std::size_t>(id)]);
  return by_parameter;
}

}  // namespace

GatherLayout::GatherLayout(const Graph& graph, std::vector<int> unit_of,
                           const std::vector<std::vector<OwnedExtent>>& owned, bool is_part)
    : unit_of_(std::move(unit_of)), is_part_(is_part) {
  add_areas(graph);
  add_slices(owned);
}

void GatherLayout::add_areas(const Graph& graph) {
  const std::vector<Reads> reads = reads_of(graph);
  const std::vector<DType> types = low_precision_weights(graph);
  for (std::size_t p = 0; p < unit_of_.size(); ++p) {
    const auto number = static_cast<std::size_t>(unit_of_[p]);
    units_.resize(std::max(units_.size(), number + 1));
    Unit& unit = units_[number];
    const auto elements = static_cast<std::size_t>(graph.at(graph.parameters[p]).spec.elements());
    const auto add = [&](bool low_precision, std::size_t element_bytes) {
      const std::size_t bytes = round_up(elements * element_bytes, kAlignment);
      unit.areas.push_back({p, low_precision, element_bytes, unit.bytes});
      unit.bytes += bytes;
      max_area_bytes_ = std::max(max_area_bytes_, bytes);
    };
    if (reads[p].float32) add(false, sizeof(float));
    if (reads[p].low_precision) add(true, size_of(types[p]));
  }
}

void GatherLayout::add_slices(const std::vector<std::vector<OwnedExtent>>& owned) {
  for (Unit& unit : units_) {
    for (const Area& area : unit.areas) {
      for (const auto& [extent, owner] : owned[area.parameter]) {
        const std::size_t begin = area.offset + static_cast<std::size_t>(extent.begin) * area.element_bytes;
        // An odd number of elements of two bytes ends in the gap after them.
        const std::size_t end =
            round_up(area.offset + static_cast<std::size_t>(extent.end) * area.element_bytes, sizeof(float));
        LOCKSTEP_CHECK(begin % sizeof(float) == 0, "slices are cut at chunks");
        Slice* const last = unit.slices.empty() ? nullptr : &unit.slices.back();
        if (last != nullptr && last->owner == owner && round_up(last->offset + last->bytes, kAlignment) == begin) {
          last->bytes = end - last->offset;
        } else {
          unit.slices.push_back({owner, begin, end - begin});
        }
      }
    }
  }
}

std::size_t GatherLayout::slots(const Program& program) const {
  std::size_t most = 0;
  for (const Instruction& instruction : program.instructions) {
    most = std::max(most, units_of(instruction, unit_of_).size());
  }
  return most + kAhead;
}

std::vector<UnitUse> GatherLayout::uses(const Program& program, std::size_t slots) const {
  return unit_uses(program, unit_of_, is_part_, slots);
}

std::vector<std::size_t> GatherLayout::slot_bytes(const std::vector<Unit>& units, const std::vector<UnitUse>& uses,
                                                  std::size_t slots) {
  std::vector<std::size_t> bytes(slots);
  for (std::size_t use = 0; use < uses.size(); ++use) {
    bytes[use % slots] = std::max(bytes[use % slots], units[static_cast<std::size_t>(uses[use].unit)].bytes);
  }
  return bytes;
}

std::size_t GatherLayout::bytes(const Program& program) const {
  const std::size_t count = slots(program);
  const auto each = slot_bytes(units_, uses(program, count), count);
  return std::accumulate(each.begin(), each.end(), std::size_t{0});
}

int waves_of(std::span<const int> micro_batches_of_ranks, std::span<const int> workers_of_ranks) {
  int most = 0;
  for (std::size_t r = 0; r < micro_batches_of_ranks.size(); ++r) {
    most = std::max(most, divide_up(micro_batches_of_ranks[r], workers_of_ranks[r]));
  }
  return most;
}

std::vector<GatherWave> waves_of_whole(std::size_t uses, int waves, int micro_batches, int workers) {
  std::vector<GatherWave> list;
  for (int wave = 0; wave < waves; ++wave)
    list.push_back({0, uses, std::clamp(micro_batches - wave * workers, 0, workers)});
  return list;
}

std::vector<int> gathers_before_buckets(const Program& program, const std::vector<UnitUse>& uses,
                                        const comm::GradientBuckets& buckets, std::span<const GatherWave> waves) {
  const GatherWave last = waves.empty() ? GatherWave{} : waves.back();
  std::size_t earlier = 0;
  for (const GatherWave& wave : waves.first(std::max<std::size_t>(waves.size(), 1) - 1))
    earlier += wave.end - wave.first;
  std::vector<int> before;
  std::size_t begun = 0, instruction = 0;
  for (const comm::GradientBuckets::Bucket& bucket : buckets.buckets) {
    while (program.instructions[instruction].slots_done < bucket.last_slot) ++instruction;
    while (begun < uses.size() && uses[begun].first <= instruction) ++begun;
    const std::size_t end = std::clamp(begun + GatherLayout::kAhead, last.first, last.end);
    before.push_back(static_cast<int>(earlier + end - last.first));
  }
  return before;
}

}  // namespace lockstep::exec
