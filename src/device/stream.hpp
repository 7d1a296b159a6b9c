// Handles of a GPU's work, for code that only passes them on. See device/gpu/gpu.hpp for their meaning.
#pragma once

#include <cstdint>

namespace lockstep::device {

enum class Stream : std::uint32_t {};
enum class Event : std::uintptr_t {};

}  // namespace lockstep::device
