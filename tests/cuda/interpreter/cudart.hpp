// What the functions of CUDA's runtime share: the state of the calling thread, and refusals.
//
// A function that isn't here is one that the module didn't call when this was written: the dynamic linker names it. A
// flag that isn't known is a problem that names it.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/interpreter/machine.hpp"

namespace lockstep::ptx {

/// Keeps the error for cudaGetLastError, and returns it.
cudaError_t failed(cudaError_t error);
/// What every call returns once an access went wrong; else success.
cudaError_t state();
/// The stream that the calling thread records, or null.
Stream*& recorded_here();
/// Where the calling thread records, a problem: the recording is spoiled, and the call fails.
bool refused_while_recording(const char* call);
/// Null, and a problem: the default stream, or one that isn't there.
Stream* stream_of(cudaStream_t stream, const char* call);
/// Whether the calling thread's GPU is that of the process: the first that any thread asked for. Else a problem, as
/// where a thread of a rank on GPU 1 has not said so, and its GPU is 0.
bool is_on_its_gpu(const char* call);
/// A problem, unless it is the only value that is known.
bool is_known(const char* call, unsigned long long flags, unsigned long long known);
/// The allocation that a work touches as a whole, a copy or a part of a library's kernel, whose touch is noted. Null,
/// and a problem: there is none.
Allocation* touched(const char* call, const void* memory, std::size_t bytes, Touch how, Space space, const Work& work,
                    u32 part = 0);

inline constexpr cudaError_t kRefused = cudaErrorStreamCaptureUnsupported;

}  // namespace lockstep::ptx

#define LOCKSTEP_INTERPRETED const std::lock_guard lock(lockstep::ptx::machine().mutex)
