#include "step/exec/fetched_parameters.hpp"

#include <algorithm>

#include "core/spans.hpp"

namespace lockstep::exec {

namespace {

constexpr std::size_t kAhead = 2;  // number of unit uses that are fetched ahead
constexpr const char* kName = "all-gather of parameters";

}  // namespace

std::set<int> units_of(const Instruction& instruction, const std::vector<int>& unit_of) {
  std::set<int> units;
  for (const Location& location : instruction.parameters) {
    if (location.space != Space::parameter && location.space != Space::low_precision) continue;
    units.insert(unit_of[location.index]);
  }
  return units;
}

std::vector<UnitUse> unit_uses(const Program& program, const std::vector<int>& unit_of, bool divided,
                               std::size_t within) {
  std::vector<UnitUse> uses;
  std::vector<std::size_t> current;  // the uses of the last instruction that had any
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    if (divided && i == static_cast<std::size_t>(program.forward_end)) current.clear();
    const std::set<int> units = units_of(program.instructions[i], unit_of);
    if (units.empty()) continue;
    std::vector<std::size_t> now;
    for (const int unit : units) {
      const auto going_on = std::find_if(current.begin(), current.end(), [&](std::size_t use) {
        return uses[use].unit == unit && uses.size() + units.size() - use <= within;
      });
      if (going_on == current.end()) {
        now.push_back(uses.size());
        uses.push_back({unit, i, i});
      } else {
        now.push_back(*going_on);
        uses[*going_on].last = i;
      }
    }
    current = std::move(now);
  }
  return uses;
}

void ParameterReader::begin(const Call& call) {
  if (call.parameters != call_.parameters) {
    uses_ =
        call.parameters == nullptr ? std::vector<UnitUse>() : unit_uses(program_, call.parameters->unit_of, divided_);
  }
  call_ = call;
  seconds_ = 0;
}

void ParameterReader::before(std::size_t instruction) {
  if (call_.parameters == nullptr) return;
  const bool begins = instruction == 0 || (divided_ && instruction == static_cast<std::size_t>(program_.forward_end));
  if (begins) {
    const auto next =
        std::find_if(uses_.begin(), uses_.end(), [&](const UnitUse& use) { return use.first >= instruction; });
    next_ = next - uses_.begin();
  }
  if (next_ == uses_.size() || uses_[next_].first != instruction) return;
  comm::FetchedMemory& memory = call_.parameters->memory;
  {
    const TraceScope span(call_.trace, kName, call_.step, call_.track, uses_[next_].unit);
    const auto start = Clock::now();
    for (; next_ < uses_.size() && uses_[next_].first == instruction; ++next_) {
      memory.acquire(uses_[next_].unit, {kName, call_.step, call_.parameters->timeout});
      held_.push_back(next_);
    }
    seconds_ += seconds_since(start);
  }
  for (std::size_t use = next_; use < std::min(next_ + kAhead, uses_.size()); ++use) memory.prefetch(uses_[use].unit);
}

void ParameterReader::after(std::size_t instruction) {
  if (call_.parameters == nullptr) return;
  std::erase_if(held_, [&](std::size_t use) {
    if (uses_[use].last != instruction) return false;
    call_.parameters->memory.release(uses_[use].unit);
    return true;
  });
}

}  // namespace lockstep::exec
