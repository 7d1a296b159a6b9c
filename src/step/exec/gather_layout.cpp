#include "step/exec/gather_layout.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "comm/reduce/micro_batch_assignment.hpp"
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
      Reads& reads = by_value[node.parameters[i]];
      const bool low = node.low_precision_weights && is_low_precision_weight(graph, node, i);
      (low ? reads.low_precision : reads.float32) = true;
    }
  }
  std::vector<Reads> by_parameter;
  for (const ValueId id : graph.parameters) by_parameter.push_back(by_value[id]);
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
    const std::size_t number = unit_of_[p];
    units_.resize(std::max(units_.size(), number + 1));
    Unit& unit = units_[number];
    const std::size_t elements = graph.at(graph.parameters[p]).spec.elements();
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
        const std::size_t begin = area.offset + extent.begin * area.element_bytes;
        // An odd number of elements of two bytes ends in the gap after them.
        const std::size_t end = round_up(area.offset + extent.end * area.element_bytes, sizeof(float));
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
    bytes[use % slots] = std::max(bytes[use % slots], units[uses[use].unit].bytes);
  }
  return bytes;
}

std::size_t GatherLayout::bytes(const Program& program) const {
  const std::size_t count = slots(program);
  const auto each = slot_bytes(units_, uses(program, count), count);
  return std::accumulate(each.begin(), each.end(), std::size_t{0});
}

std::vector<GatherWave> waves_of_whole(std::size_t uses, int waves, int micro_batches, int workers) {
  std::vector<GatherWave> list(waves, GatherWave{0, uses, 0});
  for (int i = 0; i < micro_batches; ++i) ++list[comm::wave_at(i, micro_batches, workers, waves)].readers;
  return list;
}

namespace {

/// All gathers of a step.
class Gathers {
 public:
  Gathers(const std::vector<UnitUse>& uses, std::span<const GatherWave> waves, std::size_t slots) : uses_(uses) {
    std::vector<int> last(slots, -1);  // by slot
    for (std::size_t wave = 0; wave < waves.size(); ++wave) {
      first_of_wave_.push_back(std::ssize(all_));
      for (std::size_t use = waves[wave].first; use < waves[wave].end; ++use) {
        const int before = std::exchange(last[use % slots], static_cast<int>(all_.size()));
        all_.push_back({wave, use, before});
      }
    }
  }

  /// How many precede the exchange of what the wave has made up to this instruction.
  int before(std::size_t wave, std::size_t instruction) const {
    std::size_t needed = first_of_wave_[wave];
    while (needed < all_.size() && all_[needed].wave == wave && uses_[all_[needed].use].first <= instruction) ++needed;
    std::size_t end = needed;
    while (end < std::min(all_.size(), needed + GatherLayout::kAhead) && may_precede(end, wave, instruction)) ++end;
    return end;
  }

 private:
  struct Gather {
    std::size_t wave, use;
    int before;  ///< the one that its slot has had before; -1: none
  };

  // Otherwise ranks would come to a standstill: a worker may wait for the exchange before it goes on, and only then
  // releases what is in the slot.
  bool may_precede(std::size_t gather, std::size_t wave, std::size_t instruction) const {
    const int number = all_[gather].before;
    if (number < 0) return true;
    const Gather& before = all_[number];
    return before.wave < wave || (before.wave == wave && uses_[before.use].last <= instruction);
  }

  const std::vector<UnitUse>& uses_;
  std::vector<std::ptrdiff_t> first_of_wave_;
  std::vector<Gather> all_;
};

}  // namespace

std::vector<int> gathers_before_exchanges(const Program& program, const std::vector<UnitUse>& uses,
                                          const comm::GradientBuckets& buckets, std::span<const GatherWave> waves,
                                          std::size_t slots) {
  const Gathers gathers(uses, waves, slots);
  std::size_t last = 0;  // wave with a backward
  for (std::size_t wave = 0; wave < waves.size(); ++wave) last = waves[wave].has_backward ? wave : last;
  std::vector<int> before;
  for (std::size_t wave = 0; wave < waves.size(); ++wave) {
    if (!waves[wave].has_backward) continue;
    std::size_t instruction = 0;
    for (const comm::GradientBuckets::Bucket& bucket : buckets.buckets) {
      while (program.instructions[instruction].slots_done < bucket.last_slot) ++instruction;
      if (bucket.scattered || wave == last) before.push_back(gathers.before(wave, instruction));
    }
  }
  return before;
}

}  // namespace lockstep::exec
