// Devices that are not here: a few GPUs by their makers' figures, and the fraction of them that training is assumed to
// reach. Figures are public data sheets' (dense, without sparsity); the fractions are assumptions and are printed so.
#pragma once

#include <string>
#include <vector>

#include "lockstep/choices.hpp"
#include "plan/rates.hpp"

namespace lockstep::plan {

struct KnownDevice {
  const char* name;
  double fp32_flops, tf32_flops, half_flops;  ///< a second; half: bf16 and fp16
  double memory_bytes_per_second;
  double memory_bytes;
  double link_bytes_per_second;  ///< one way, between two of a host
};

[[nodiscard]] const std::vector<KnownDevice>& known_devices();

/// Assumed fractions of the figures.
inline constexpr double kShareOfFlops = 0.4, kShareOfMemory = 0.7, kShareOfLink = 0.6;
/// Assumed of activations and their gradients, which go through pinned memory of the host: onto it, and from it.
inline constexpr double kPartBytes = 8e9;

/// "8xH100,4xA100-40" -> twelve devices, by rank. Throws Error(usage), with the names that there are.
[[nodiscard]] std::vector<const KnownDevice*> devices_of(const std::string& text);

[[nodiscard]] Rates rates_of(const KnownDevice& device, Precision precision);

}  // namespace lockstep::plan
