#include "step/optim/parameter_units.hpp"

#include <cstddef>

namespace lockstep::optim {

std::vector<int> parameter_units(const Graph& graph, const Program& program, std::int64_t unit_bytes) {
  std::vector<int> units(graph.parameters.size(), -1);
  int unit = 0;
  std::int64_t bytes = 0;
  const auto add = [&](std::size_t parameter) {
    if (units[parameter] >= 0) return;
    const std::int64_t more = graph.at(graph.parameters[parameter]).spec.bytes();
    if (bytes > 0 && bytes + more > unit_bytes) {
      ++unit;
      bytes = 0;
    }
    units[parameter] = unit;
    bytes += more;
  };
  for (const Instruction& instruction : program.instructions) {
    for (const Location& location : instruction.parameters) {
      const bool is_parameter = location.space == Space::parameter || location.space == Space::low_precision;
      if (is_parameter) add(static_cast<std::size_t>(location.index));
    }
  }
  for (std::size_t p = 0; p < units.size(); ++p) add(p);  // those that nothing reads
  return units;
}

}  // namespace lockstep::optim
