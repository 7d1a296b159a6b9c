// What ranks ask of each other: flags that ride on the exchange of a step's scalars. What one rank asks for, all of
// them see at the same step.
#pragma once

#include <cstdint>

namespace lockstep::train {

inline constexpr std::uint32_t kStopAsked = 1;
inline constexpr std::uint32_t kEndAfterCheckpoint = 2;
inline constexpr std::uint32_t kSamplesReplaced = 4;  ///< a rank has samples to tell of: all gather them now
inline constexpr std::uint32_t kSharesMove = 16;      ///< rank 0 has decided on other shares: it tells them now

}  // namespace lockstep::train
