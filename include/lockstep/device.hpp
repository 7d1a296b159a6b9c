// The kinds of device that a job can run on.
#pragma once

#include <cstdint>

namespace lockstep {

/// The same for all ranks of a job.
enum class DeviceKind : std::uint8_t { cpu, cuda };

}  // namespace lockstep
