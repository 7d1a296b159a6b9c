// What a stand-in for one of NVIDIA's libraries needs from the interpreted GPU: to run its own kernels on the module's
// streams. Such a kernel is ordered like any other, and its reads and writes are checked like a kernel's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "cuda/interpreter/costs.hpp"
#include "cuda/interpreter/types.hpp"

namespace lockstep::ptx {

/// The GPU's memory as seen by a running kernel. `who` makes the access, for messages. Parts of a kernel are numbered
/// from 1; nothing orders two of them.
class LibraryMemory {
 public:
  LibraryMemory() = default;
  LibraryMemory(const LibraryMemory&) = delete;
  LibraryMemory& operator=(const LibraryMemory&) = delete;
  virtual ~LibraryMemory() = default;
  /// The location of these bytes; null if they are in no allocation: the GPU is then broken.
  virtual const u8* reads(const char* who, u32 part, const void* memory, std::size_t bytes) = 0;
  virtual u8* writes(const char* who, u32 part, void* memory, std::size_t bytes) = 0;
};

class LibraryKernel {
 public:
  LibraryKernel() = default;
  LibraryKernel(const LibraryKernel&) = delete;
  LibraryKernel& operator=(const LibraryKernel&) = delete;
  virtual ~LibraryKernel() = default;
  /// Makes as much progress as it can; called repeatedly while it is the next on its stream. True: it is done.
  virtual bool run(LibraryMemory& memory) = 0;
  /// What it is and does, for an estimate of its time: floating-point operations, and bytes of its operands.
  [[nodiscard]] virtual LibraryCost cost() const { return {}; }
};

}  // namespace lockstep::ptx

extern "C" {

/// The mutex of the whole interpreted GPU. A library may also protect its own state with it: its kernels run under it.
std::mutex& cudaInterpreterMutex();

// The functions below are called with the mutex held.

/// Enqueues a kernel. Success, or the reason why it is impossible on that stream, which is then a problem.
cudaError_t cudaInterpreterPut(cudaStream_t stream, const char* call,
                               const std::shared_ptr<lockstep::ptx::LibraryKernel>& kernel);
/// The same for a kernel that is always done at once and has no state: a graph may record it, and runs it with each
/// launch.
cudaError_t cudaInterpreterLaunch(cudaStream_t stream, const char* call,
                                  const std::shared_ptr<lockstep::ptx::LibraryKernel>& kernel);
/// Lets some work on the GPU progress, if it can: as GPUs do without being asked.
void cudaInterpreterGoOn();
/// Reports a problem.
void cudaInterpreterProblem(const std::string& what);

}  // extern "C"
