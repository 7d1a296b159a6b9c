// Which build this is: a hash of every header, the version, the compiler and the flags that change layouts. The
// program and its CUDA module call each other through C++ types, so both must come from one build.
#pragma once

namespace lockstep::device {

/// 16 hexadecimal digits; CMake writes the function (cmake/BuildId.cmake).
[[nodiscard]] const char* build_id();

}  // namespace lockstep::device
