#pragma once

namespace lockstep {

/// "0.1.0"
[[nodiscard]] const char* version();

}  // namespace lockstep
