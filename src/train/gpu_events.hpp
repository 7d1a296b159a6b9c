// What GPUs a run has: one event a rank, and a warning where they are not alike.
#pragma once

#include <string>
#include <vector>

#include "backend/gpu/driver.hpp"
#include "train/run_context.hpp"

namespace lockstep::train {

/// Tells of each rank's GPU. Every rank calls it, each on a GPU.
void emit_gpus(const RunContext& run);

/// In what the GPUs of ranks differ, each with the first rank that differs from rank 0: "memory clock (rank 0: 2619
/// MHz, rank 3: 1593 MHz)"; empty: nothing. `drivers`: as DriverFacts::cuda_version.
[[nodiscard]] std::string differences(const std::vector<backend::GpuInfo>& gpus, const std::vector<int>& drivers);

}  // namespace lockstep::train
