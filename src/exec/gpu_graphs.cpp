#include "exec/gpu_graphs.hpp"

namespace lockstep::exec {

void GpuGraphs::begin(std::vector<const void*> addresses) {
  if (addresses == addresses_) return;
  recorded_.clear();
  addresses_ = std::move(addresses);
}

GpuGraphs::Recorded& GpuGraphs::at(std::size_t part, std::span<const comm::GradientBuffer> buffers) {
  key_.assign(1, part);
  for (const comm::GradientBuffer& buffer : buffers) {
    key_.push_back(reinterpret_cast<std::uintptr_t>(buffer.memory));
    key_.push_back(buffer.add ? 1 : 0);
  }
  return recorded_[key_];
}

}  // namespace lockstep::exec
