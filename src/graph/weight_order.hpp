// Which parameters a device stores in another order than the model's (lowering/order_weights.cpp). Files, the host's
// copies and everything that users see have the model's order.
#pragma once

#include <vector>

#include "core/filter_sizes.hpp"
#include "lockstep/graph.hpp"

namespace lockstep {

/// For a weight [filters, channels, height, width]; for other shapes, sizes whose orders are the same.
[[nodiscard]] inline FilterSizes filter_sizes(const Shape& shape) {
  return shape.size() == 4 ? FilterSizes(shape[1], shape[2] * shape[3]) : FilterSizes();
}

/// For each of Graph::parameters, whether it is kept with channels last.
[[nodiscard]] inline std::vector<bool> kept_channels_last(const Graph& graph) {
  std::vector<bool> list;
  for (const ValueId id : graph.parameters) list.push_back(graph.at(id).channels_last);
  return list;
}

/// For each of Graph::parameters, whether its elements have another order there than in the model.
[[nodiscard]] inline std::vector<bool> stored_in_another_order(const Graph& graph) {
  std::vector<bool> list;
  for (const ValueId id : graph.parameters) {
    const Value& value = graph.at(id);
    list.push_back(value.channels_last && filter_sizes(value.spec.shape).orders_differ());
  }
  return list;
}

}  // namespace lockstep
