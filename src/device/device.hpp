// What a device is to the rooms above: its kind, its name, what the bits depend on.
#pragma once

#include <string>

#include "lockstep/device.hpp"

namespace lockstep::device {

struct DeviceInfo {
  DeviceKind kind = DeviceKind::cpu;
  std::string model;             ///< "Intel(R) Xeon(R) Processor"
  std::string isa;               ///< what oneDNN dispatches to: "avx512_core_amx"
  std::string libraries;         ///< "oneDNN 2.6.3"
  bool multiplies_bf16 = false;  ///< of a CPU: oneDNN has instructions for it there, and computes its products itself
};

[[nodiscard]] DeviceInfo cpu_info();

// What the cores could compute at most: the measure that model FLOPs utilization (MFU) is a part of.

/// fp32 operations a second of `cores` at `hertz`: two fused multiply-adds of a whole vector a cycle, as Intel's and
/// AMD's server cores do. `isa`: oneDNN's name, as in DeviceInfo. 0: not known.
[[nodiscard]] double peak_flops(const std::string& isa, double hertz, int cores);

/// The highest clock that the system tells of core 0, else the present one; 0: it tells none.
[[nodiscard]] double cpu_hertz();

}  // namespace lockstep::device
