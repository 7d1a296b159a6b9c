// Where a bench's gradients are: on the hosts, or on the ranks' GPUs.
#pragma once

#include <chrono>

#include "comm/reduce/reduce_times.hpp"
#include "exec/device.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::cli {

inline constexpr std::chrono::seconds kBenchPatience{60};

/// That of `device`, which must live as long. Of GPUs messages are between the ranks of `communicator`.
[[nodiscard]] comm::ReduceDevice reduce_device(const exec::Device& device, Communicator& communicator);

}  // namespace lockstep::cli
