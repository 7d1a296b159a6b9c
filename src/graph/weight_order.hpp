// Which parameters a device keeps in another order than the model has them in (lowering/order_weights.cpp). Files, the
// host's copies and whatever people see have the model's.
#pragma once

#include <vector>

#include "core/filter_sizes.hpp"
#include "lockstep/graph.hpp"

namespace lockstep {

/// Of a weight [filters, channels, height, width]; of all else, sizes whose orders are the same.
[[nodiscard]] inline FilterSizes filter_sizes(const Shape& shape) {
  return shape.size() == 4 ? FilterSizes(shape[1], shape[2] * shape[3]) : FilterSizes();
}

/// For each of Graph::parameters, whether it is kept with channels last.
[[nodiscard]] inline std::vector<bool> kept_channels_last(const Graph& graph) {
  std::vector<bool> list;
  for (const ValueId id : graph.parameters) list.push_back(graph.at(id).channels_last);
  return list;
}

}  // namespace lockstep
