#pragma once

#include <cstdint>

namespace lockstep {

/// What computes. All ranks of a job are of one kind.
enum class DeviceKind : std::uint8_t { cpu, cuda };

}  // namespace lockstep
