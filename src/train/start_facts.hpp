// What a run is, before its first step: facts that all ranks must share, and that its checkpoints keep.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "input/prepared_data.hpp"
#include "train/run_context.hpp"

namespace lockstep::train {

/// The progress of a run that has done nothing yet. `algorithms`: what its kernels chose (Executor::algorithms()).
/// Compares job, data, program and fingerprint between the ranks; throws Error(usage) that names the rank and host that
/// differ. Where only fingerprints differ and the job does not require exact bits, it warns and says so in `exactness`.
[[nodiscard]] checkpoint::Progress begin_progress(const RunContext& run, const input::PreparedData& data,
                                                  const std::vector<std::string>& algorithms);

/// Collective: compares one more thing that the bits depend on, `value` of at most 128 characters, in the same way.
void compare_bits(const RunContext& run, const std::string& name, const std::string& value,
                  checkpoint::Progress& progress);

/// What `exactness` says: in the start event and in checkpoints.
inline constexpr const char* kBitwise = "bitwise";
inline constexpr const char* kNotBitwise = "exact gradient, not bitwise";
inline constexpr const char* kAllReduce = "plain all-reduce";

}  // namespace lockstep::train
