// What the cores could compute at most: the measure that model FLOPs utilization (MFU) is a part of.
#pragma once

#include <string>

namespace lockstep::device {

/// fp32 operations a second of `cores` at `hertz`: two fused multiply-adds of a whole vector a cycle, as Intel's and
/// AMD's server cores do. `isa`: oneDNN's name, as in DeviceInfo. 0: not known.
[[nodiscard]] double peak_flops(const std::string& isa, double hertz, int cores);

/// The highest clock that the system tells of core 0, else the present one; 0: it tells none.
[[nodiscard]] double cpu_hertz();

}  // namespace lockstep::device
