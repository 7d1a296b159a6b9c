#include "comm/transport/nccl_check.hpp"

#include <fmt/format.h>

namespace lockstep::comm {

std::string what_is(ncclResult_t code, ncclComm_t communicator) {
  const char* last = ncclGetLastError(communicator);
  const std::string said = last == nullptr ? "" : last;
  return said.empty() ? ncclGetErrorString(code) : fmt::format("{} ({})", ncclGetErrorString(code), said);
}

void check_nccl(ncclResult_t code, const char* call, ncclComm_t communicator, const device::GpuPlace& place) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  throw device::gpu_error(place, call, static_cast<int>(code), what_is(code, communicator));
}

}  // namespace lockstep::comm
