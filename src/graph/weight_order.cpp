#include "graph/weight_order.hpp"

namespace lockstep {

FilterSizes filter_sizes(const Shape& shape) {
  return shape.size() == 4 ? FilterSizes(shape[1], shape[2] * shape[3]) : FilterSizes();
}

std::vector<bool> kept_channels_last(const Graph& graph) {
  std::vector<bool> list;
  for (const ValueId id : graph.parameters) list.push_back(graph.at(id).channels_last);
  return list;
}

}  // namespace lockstep
