// Handles of a GPU's work, for code that only passes them on. device/gpu/gpu.hpp says what they stand for.
#pragma once

#include <cstdint>

namespace lockstep::device {

enum class Stream : std::uint32_t {};
enum class Event : std::uintptr_t {};

}  // namespace lockstep::device
