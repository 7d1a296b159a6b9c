// CUDA's runtime: memory and copies.
#include <fmt/format.h>

#include <cstring>

#include "cuda/interpreter/cudart.hpp"

namespace lockstep::ptx {

namespace {

cudaError_t allocate(void** memory, std::size_t bytes, Space space, const char* call) {
  LOCKSTEP_INTERPRETED;
  if (refused_while_recording(call)) return kRefused;
  if (!is_on_its_gpu(call)) return cudaErrorInvalidResourceHandle;
  *memory = machine().memory.allocate(bytes, space);
  return *memory == nullptr && bytes != 0 ? failed(cudaErrorMemoryAllocation) : state();
}

/// What has been put on streams is done as if nobody waited; then it must be known to the host.
void expect_unused(void* memory, const char* call) {
  machine().streams.run_out();
  const auto address = reinterpret_cast<u64>(memory);
  const Allocation* const found = machine().memory.find(address, 1);
  if (found == nullptr || found->address != address) return;
  if (found->shadow.is_known(machine().streams.order(), machine().streams.host())) return;
  machine().problems.add(std::string(call) + " misses a wait: work that the host hasn't waited for uses the memory",
                         machine().memory.describe(address, 1));
}

/// CUDA waits for the GPU where memory is freed; nothing may lean on that, so here the host knows no more after it.
cudaError_t free_memory(void* memory, Space space, const char* call) {
  LOCKSTEP_INTERPRETED;
  if (memory == nullptr) return cudaSuccess;
  if (refused_while_recording(call)) return kRefused;
  expect_unused(memory, call);
  const std::string wrong = machine().memory.free(memory, space);
  if (wrong.empty()) return state();
  machine().problems.add(std::string(call) + ": " + wrong);
  return failed(cudaErrorInvalidValue);
}

}  // namespace

Allocation* touched(const char* call, const void* memory, std::size_t bytes, Touch how, Space space, const Work& work,
                    u32 part) {
  const auto address = reinterpret_cast<u64>(memory);
  Allocation* const found = machine().memory.find(address, bytes);
  const char* const verb = how == Touch::write ? "writes" : "reads";
  const auto where = [&] { return machine().memory.describe(address, bytes); };
  if (found == nullptr) {
    machine().problems.add(fmt::format("{} {} outside of memory", call, verb),
                           fmt::format("{} bytes {}", bytes, where()));
    machine().problems.break_gpu();
    return nullptr;
  }
  if (found->space != space) {
    machine().problems.add(fmt::format("{} {} memory of another kind than it says", call, verb), where());
  }
  const Toucher toucher{.order = &machine().streams.order(), .work = &work, .warp = part};
  if (const char* const wrong = found->shadow.touch(address - found->address, bytes, how, toucher)) {
    machine().problems.add(fmt::format("{} {}", call, wrong), where());
  }
  return found;
}

namespace {

struct CopyKind {
  const char* name;
  Space to, from;
};

const CopyKind* kind_of(cudaMemcpyKind kind) {
  static constexpr CopyKind kToGpu{"a copy to the GPU", Space::gpu, Space::pinned};
  static constexpr CopyKind kToHost{"a copy to the host", Space::pinned, Space::gpu};
  static constexpr CopyKind kOnGpu{"a copy on the GPU", Space::gpu, Space::gpu};
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return &kToGpu;
    case cudaMemcpyDeviceToHost:
      return &kToHost;
    case cudaMemcpyDeviceToDevice:
      return &kOnGpu;
    default:
      return nullptr;
  }
}

void copy(void* to, const void* from, std::size_t bytes, const CopyKind& kind, const Work& work) {
  ++machine().copies;
  // A copy on the GPU propagates that memory is unwritten; a copy to the host may contain unwritten memory, too.
  Allocation* const source = touched(kind.name, from, bytes, Touch::copy_read, kind.from, work);
  Allocation* const target = touched(kind.name, to, bytes, Touch::write, kind.to, work);
  if (source == nullptr || target == nullptr) return;
  const auto to_address = reinterpret_cast<u64>(to), from_address = reinterpret_cast<u64>(from);
  target->shadow.copy_written(to_address - target->address, source->shadow, from_address - source->address, bytes);
  std::memmove(target->data(to_address), source->data(from_address), bytes);
}

Act put_copy(void* to, const void* from, std::size_t bytes, const CopyKind& kind) {
  if (kind.to == kind.from) return [=](const Work& work) { copy(to, from, bytes, kind, work); };
  const bool writes = kind.to == Space::pinned;
  const auto token =
      machine().pinned_copies.put(machine().memory, reinterpret_cast<u64>(writes ? to : from), bytes, writes);
  return [=](const Work& work) {
    machine().pinned_copies.done(machine().memory, machine().problems, token);
    copy(to, from, bytes, kind, work);
  };
}

}  // namespace

}  // namespace lockstep::ptx

using lockstep::ptx::machine;
using lockstep::ptx::Space;
using lockstep::ptx::Work;

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return lockstep::ptx::allocate(memory, bytes, Space::gpu, "cudaMalloc");
}
cudaError_t cudaFree(void* memory) {
  return lockstep::ptx::free_memory(memory, Space::gpu, "cudaFree");
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned flags) {
  if (!lockstep::ptx::is_known("cudaHostAlloc", flags, cudaHostAllocDefault)) return cudaErrorInvalidValue;
  return lockstep::ptx::allocate(memory, bytes, Space::pinned, "cudaHostAlloc");
}
cudaError_t cudaFreeHost(void* memory) {
  return lockstep::ptx::free_memory(memory, Space::pinned, "cudaFreeHost");
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  LOCKSTEP_INTERPRETED;
  *total = size_t{machine().costs == nullptr ? 8U : 80U} << 30;
  *free = *total - machine().memory.used();
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  LOCKSTEP_INTERPRETED;
  const auto* const known = lockstep::ptx::kind_of(kind);
  if (known == nullptr) {
    machine().problems.add(fmt::format("cudaMemcpyAsync: kind {} isn't known", static_cast<int>(kind)));
    return lockstep::ptx::failed(cudaErrorInvalidMemcpyDirection);
  }
  auto* const on = lockstep::ptx::stream_of(stream, "cudaMemcpyAsync");
  if (on == nullptr) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return lockstep::ptx::state();
  machine().streams.put_made(*on, [=] { return lockstep::ptx::put_copy(to, from, bytes, *known); });
  return lockstep::ptx::state();
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  LOCKSTEP_INTERPRETED;
  auto* const on = lockstep::ptx::stream_of(stream, "cudaMemsetAsync");
  if (on == nullptr) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return lockstep::ptx::state();
  machine().streams.put(*on, [=](const Work& work) {
    auto* const to = lockstep::ptx::touched("a memset", memory, bytes, lockstep::ptx::Touch::write, Space::gpu, work);
    if (to != nullptr) std::memset(to->data(reinterpret_cast<lockstep::ptx::u64>(memory)), value, bytes);
  });
  return lockstep::ptx::state();
}

}  // extern "C"
