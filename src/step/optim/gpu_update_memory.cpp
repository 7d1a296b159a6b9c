#include "step/optim/gpu_update_memory.hpp"

#include <algorithm>

#include "graph/weight_order.hpp"
#include "step/optim/update_kernels.hpp"

namespace lockstep::optim {

namespace {

using exec::GpuTensors;

// A rank has all of a state of another shape.
std::size_t bytes_of_state(const GpuUpdateSizes& sizes, const OptimizerState& state) {
  exec::KeptElements kept = sizes.updated;
  for (std::size_t p = 0; p < kept.size(); ++p) {
    const Shape& parameter = sizes.graph.at(sizes.graph.parameters[p]).spec.shape;
    const Shape shape = state.shape(parameter);
    if (shape != parameter) kept[p] = {{0, elements(shape)}};
  }
  return GpuTensors::bytes(kept);
}

}  // namespace

std::vector<exec::MemoryNeed> needs_of_update(const GpuUpdateSizes& sizes) {
  exec::KeptElements states;
  for (const ValueId id : sizes.graph.states) states.push_back({{0, sizes.graph.at(id).spec.elements()}});
  auto needs = exec::GpuParameters::needs(sizes.graph, sizes.parameters, states);
  const std::size_t gradient = GpuTensors::bytes(sizes.updated);
  needs.push_back({"gradient", gradient});
  exec::MemoryNeed optimizer{"optimizer", gradient, static_cast<int>(sizes.states.size())};
  if (sizes.optimizer.state_shape) {  // its states differ in size
    optimizer = {"optimizer", 0};
    for (const OptimizerState& state : sizes.states) optimizer.each += bytes_of_state(sizes, state);
  }
  if (!sizes.states.empty()) needs.push_back(optimizer);
  if (sizes.optimizer.state_shape) {
    needs.push_back({"steps of matrices", adafactor_bytes(sizes.graph, sizes.optimizer, sizes.is_divided)});
  } else if (sizes.matrices > 0) {
    needs.push_back({"steps of matrices", sizes.matrices});
  }
  const std::size_t parts = gradient / sizeof(float) / GpuTensors::kPart;
  needs.push_back({"tables of the update", parts * (sizeof(UpdatePart) + sizeof(const float*))});
  return needs;
}

bool copies_gradient(const Graph& graph, std::size_t parameter, bool is_divided) {
  return is_divided || stored_in_another_order(graph)[parameter];
}

}  // namespace lockstep::optim
