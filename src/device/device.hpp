// What other rooms need to know about a device: its kind, its name, and what the bits depend on.
#pragma once

#include <string>

#include "lockstep/device.hpp"

namespace lockstep::device {

struct DeviceInfo {
  DeviceKind kind = DeviceKind::cpu;
  std::string model;             ///< "Intel(R) Xeon(R) Processor"
  std::string isa;               ///< what oneDNN dispatches to: "avx512_core_amx"
  std::string libraries;         ///< "oneDNN 2.6.3"
  bool multiplies_bf16 = false;  ///< CPUs: oneDNN has native instructions for it, and computes its products with them
};

[[nodiscard]] DeviceInfo cpu_info();

// Upper bounds of the cores' performance, on which model FLOPs utilization (MFU) is based.

/// fp32 operations per second of `cores` at `hertz`: two fused multiply-adds of a whole vector per cycle, as on Intel's
/// and AMD's server cores. `isa`: oneDNN's name, as in DeviceInfo. 0: unknown.
[[nodiscard]] double peak_flops(const std::string& isa, double hertz, int cores);

/// The highest clock that the system reports for core 0, else its current one; 0: unknown.
[[nodiscard]] double cpu_hertz();

}  // namespace lockstep::device
