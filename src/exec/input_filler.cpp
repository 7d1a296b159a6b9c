#include "exec/input_filler.hpp"

namespace lockstep::exec {

std::vector<std::size_t> tensor_bytes(const Graph& graph, const InputFiller* filler) {
  if (filler != nullptr) return {filler->parts().begin(), filler->parts().end()};
  std::vector<std::size_t> bytes;
  for (const ValueId id : graph.inputs) bytes.push_back(graph.at(id).spec.bytes());
  return bytes;
}

}  // namespace lockstep::exec
