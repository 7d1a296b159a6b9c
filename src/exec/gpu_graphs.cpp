#include "exec/gpu_graphs.hpp"

namespace lockstep::exec {

void GpuGraphs::begin(std::vector<const void*> addresses) {
  if (addresses == addresses_) return;
  recorded_.clear();
  addresses_ = std::move(addresses);
}

GpuGraphs::Recorded& GpuGraphs::at(std::size_t part, std::span<const comm::Leaf> leaves) {
  key_.assign(1, part);
  for (const comm::Leaf& leaf : leaves) {
    key_.push_back(reinterpret_cast<std::uintptr_t>(leaf.memory));
    key_.push_back(leaf.add ? 1 : 0);
  }
  return recorded_[key_];
}

}  // namespace lockstep::exec
