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

}  // namespace lockstep::device
