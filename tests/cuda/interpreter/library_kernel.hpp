// What a library in the place of one of NVIDIA's asks of the interpreted GPU: kernels of its own on the streams of the
// module. Such a kernel is ordered as any other, and what it reads and writes is checked as a kernel's accesses are.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "cuda/interpreter/types.hpp"

namespace lockstep::ptx {

/// The GPU's memory, as a kernel that runs sees it. `who` accesses, for messages. Parts of a kernel are from 1; nothing
/// orders two of them.
class LibraryMemory {
 public:
  LibraryMemory() = default;
  LibraryMemory(const LibraryMemory&) = delete;
  LibraryMemory& operator=(const LibraryMemory&) = delete;
  virtual ~LibraryMemory() = default;
  /// Where these bytes lie; null, and the GPU is broken: nowhere.
  virtual const u8* reads(const char* who, u32 part, const void* memory, std::size_t bytes) = 0;
  virtual u8* writes(const char* who, u32 part, void* memory, std::size_t bytes) = 0;
};

class LibraryKernel {
 public:
  LibraryKernel() = default;
  LibraryKernel(const LibraryKernel&) = delete;
  LibraryKernel& operator=(const LibraryKernel&) = delete;
  virtual ~LibraryKernel() = default;
  /// Goes on as far as it can, again and again while it is the next on its stream. True: it is done.
  virtual bool run(LibraryMemory& memory) = 0;
};

}  // namespace lockstep::ptx

extern "C" {

/// Of all that the interpreted GPU has. A library may keep its own state under it, too: its kernels run under it.
std::mutex& cudaInterpreterMutex();

// The others are called with the mutex held.

/// Success, or why there can be no kernel on that stream, which then is a problem.
cudaError_t cudaInterpreterPut(cudaStream_t stream, const char* call,
                               const std::shared_ptr<lockstep::ptx::LibraryKernel>& kernel);
/// Something on the GPU goes on, if it can: as GPUs do without being asked.
void cudaInterpreterGoOn();
/// Says what is wrong.
void cudaInterpreterProblem(const std::string& what);

}  // extern "C"
