// Requests between ranks: flags that travel with the scalars of a step, so all ranks see a request of any rank at the
// same step.
#pragma once

#include <cstdint>

namespace lockstep::train {

inline constexpr std::uint32_t kStopRequested = 1;
inline constexpr std::uint32_t kEndAfterCheckpoint = 2;
inline constexpr std::uint32_t kSamplesReplaced = 4;  ///< a rank has replaced samples to report: all gather them now
inline constexpr std::uint32_t kAssignmentChanges =
    16;  ///< rank 0 has decided on another micro-batch assignment and broadcasts it now

}  // namespace lockstep::train
