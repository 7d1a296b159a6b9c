#include "device/gpu/gpu_memory.hpp"

#include <algorithm>

#include "core/round_up.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device {

namespace {

constexpr std::size_t kStep = std::size_t{2} << 20;  // the driver's mapping granularity

}  // namespace

GpuArena::~GpuArena() {
  try {
    release();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the GPU is lost, and its memory with it
  }
}

std::byte* GpuArena::reserve(std::size_t bytes) {
  if (bytes <= bytes_ && block_ != nullptr) return block_;
  release();  // frees the old block first, so that both need not fit together
  const std::size_t wanted = std::max(round_up(bytes, kStep), kStep);
  block_ = gpu_.allocate(wanted);
  bytes_ = wanted;
  return block_;
}

void GpuArena::release() {
  if (block_ == nullptr) return;
  gpu_.wait(last_use_);
  gpu_.free(block_);
  block_ = nullptr;
  bytes_ = 0;
}

}  // namespace lockstep::device
