// Shared by the functions of CUDA's runtime: the state of the calling thread, and refusals.
//
// Functions that the module did not call when this was written are missing: the dynamic linker names them. An unknown
// flag is a problem that names it.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/interpreter/machine.hpp"

namespace lockstep::ptx {

/// Keeps the error for cudaGetLastError, and returns it.
cudaError_t failed(cudaError_t error);
/// What every call returns after an access has gone wrong; otherwise success.
cudaError_t state();
/// The stream that the calling thread is recording, or null.
Stream*& recorded_here();
/// A problem if the calling thread is recording: the recording is spoiled, and the call fails.
bool refused_while_recording(const char* call);
/// Null, with a problem, for the default stream or one that does not exist.
Stream* stream_of(cudaStream_t stream, const char* call);
/// Whether the calling thread's GPU is that of the process: the first that any thread selected. Otherwise a problem:
/// for instance, if a thread of a rank on GPU 1 has not selected it, its GPU is 0.
bool is_on_its_gpu(const char* call);
/// A problem unless `flags` is the only known value.
bool is_known(const char* call, unsigned long long flags, unsigned long long known);
/// The allocation that a copy, or a part of a library's kernel, accesses; records the access. Null, with a problem, if
/// there is none.
Allocation* touched(const char* call, const void* memory, std::size_t bytes, Touch how, Space space, const Work& work,
                    u32 part = 0);

inline constexpr cudaError_t kRefused = cudaErrorStreamCaptureUnsupported;

}  // namespace lockstep::ptx

#define LOCKSTEP_INTERPRETED const std::lock_guard lock(lockstep::ptx::machine().mutex)
