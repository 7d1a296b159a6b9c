// What a job computes on.
#pragma once

#include <cstdint>

namespace lockstep {

/// All ranks of a job have one kind.
enum class DeviceKind : std::uint8_t { cpu, cuda };

}  // namespace lockstep
