// Devices that are not present: some GPUs with their makers' figures, and the fraction of them that training is assumed
// to reach. The figures are from public data sheets (dense, without sparsity); the fractions are assumptions and are
// reported as such.
#pragma once

#include <string>
#include <vector>

#include "lockstep/choices.hpp"
#include "run/plan/rates.hpp"

namespace lockstep::plan {

struct KnownDevice {
  const char* name;
  double fp32_flops, tf32_flops, half_flops;  ///< per second; half: bf16 and fp16
  double memory_bytes_per_second;
  double memory_bytes;
  double link_bytes_per_second;  ///< one way, between two GPUs of a host
};

[[nodiscard]] const std::vector<KnownDevice>& known_devices();
/// Null if there is none of this name.
[[nodiscard]] const KnownDevice* find_device(const std::string& name);
/// Their names, with commas.
[[nodiscard]] std::string names_of_devices();

/// Assumed fractions of the figures.
inline constexpr double kShareOfFlops = 0.4, kShareOfMemory = 0.7, kShareOfLink = 0.6;
/// Assumed for activations and their gradients, which go through pinned host memory: to the host and back.
inline constexpr double kPartBytes = 8e9;

/// "8xH100,4xA100-40" -> twelve devices, by rank. Throws Error(usage) with the known names.
[[nodiscard]] std::vector<const KnownDevice*> devices_of(const std::string& text);

[[nodiscard]] Rates rates_of(const KnownDevice& device, Precision precision);

}  // namespace lockstep::plan
