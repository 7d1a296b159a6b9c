#include "device/gpu/gpu_arena.hpp"

#include "lockstep/error.hpp"

namespace lockstep::device {

namespace {

constexpr std::size_t kStep = std::size_t{2} << 20;  // what the driver maps at a time

}  // namespace

GpuArena::~GpuArena() {
  try {
    release();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the GPU is lost, and its memory with it
  }
}

std::byte* GpuArena::reserve(std::size_t bytes) {
  if (bytes <= bytes_ && block_ != nullptr) return block_;
  release();  // before the new block, so that both need not fit together
  const std::size_t wanted = (bytes + kStep - 1) / kStep * kStep;
  block_ = gpu_.allocate(wanted == 0 ? kStep : wanted);
  bytes_ = wanted == 0 ? kStep : wanted;
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
