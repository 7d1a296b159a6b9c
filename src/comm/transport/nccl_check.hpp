// NCCL's verdicts, for LOCKSTEP_GPU of device/cuda/check.hpp.
#pragma once

#include <nccl.h>

#include <string>

#include "device/gpu/gpu_place.hpp"

namespace lockstep::comm {

/// NCCL's words for a code, with what it says of the last error of this communicator (null: of the process).
[[nodiscard]] std::string what_is(ncclResult_t code, ncclComm_t communicator);

/// Throws unless the call has succeeded or, in a communicator that does not block, is under way.
void check_nccl(ncclResult_t code, const char* call, ncclComm_t communicator, const device::GpuPlace& place);

}  // namespace lockstep::comm
