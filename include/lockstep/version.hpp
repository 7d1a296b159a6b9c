#pragma once

namespace lockstep {

/// "0.1.0"
[[nodiscard]] const char* version();

/// 16 hexadecimal digits, a hash of all headers, the version and the compiler: what a program and the libraries that it
/// opens at run time must share, since C++ objects pass between them.
[[nodiscard]] const char* build_id();

}  // namespace lockstep
