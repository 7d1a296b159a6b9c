// Loops over rows of channels [rows, channels] with the channels' constants and sums in registers; for functions marked
// LOCKSTEP_VECTORIZED.
//
// Channels are cut into groups of 64, 32, 16 and a remainder. The association of a sum over rows depends only on the
// numbers of channels and rows: row r goes to stream r mod streams, and the streams are combined as a tree.
#pragma once

#include "device/cpu/reduce.hpp"

namespace lockstep::ops {

/// Member functions and functors of loops must be inlined into each instruction set's version.
#define LOCKSTEP_MEMBER inline __attribute__((always_inline))

using device::kLanes;
using device::Lanes;

/// kWidth registers of 16 channels each; the last one has fewer unless kWhole.
template <int kWidth, bool kWhole>
struct ChannelGroup {
  static constexpr int kVectors = kWidth;
  std::int64_t first = 0;       ///< its first channel
  std::int64_t count = kLanes;  ///< channels in the last register

  LOCKSTEP_MEMBER void load(Lanes& to, const float* row, int w) const {
    if constexpr (kWhole) {
      device::load(to, row + first + w * kLanes);
    } else {
      device::load_part(to, row + first + w * kLanes, count, 0);
    }
  }
  LOCKSTEP_MEMBER void store(float* row, int w, const Lanes& from) const {
    if constexpr (kWhole) {
      device::store(row + first + w * kLanes, from);
    } else {
      std::memcpy(row + first + w * kLanes, &from, count * sizeof(float));
    }
  }
};

/// Calls functor(group) for each group of channels.
template <class Functor>
LOCKSTEP_INLINE void for_channel_groups(std::int64_t channels, const Functor& functor) {
  std::int64_t c = 0;
  for (; c + 4 * kLanes <= channels; c += 4 * kLanes) functor(ChannelGroup<4, true>{c});
  for (; c + 2 * kLanes <= channels; c += 2 * kLanes) functor(ChannelGroup<2, true>{c});
  for (; c + kLanes <= channels; c += kLanes) functor(ChannelGroup<1, true>{c});
  if (c < channels) functor(ChannelGroup<1, false>{c, channels - c});
}

/// total[t][w] = sum over rows of values[t], which term(row, w, values[kTerms]) sets.
template <int kTerms, int kWidth, class Term>
LOCKSTEP_INLINE void sum_over_rows(std::int64_t rows, const Term& term, Lanes (&total)[kTerms][kWidth]) {
  constexpr int kStreams = 8 / kWidth;
  Lanes sums[kStreams][kTerms][kWidth] = {};
  Lanes values[kTerms];
  std::int64_t row = 0;
  for (; row + kStreams <= rows; row += kStreams) {
#pragma GCC unroll 8
    for (int s = 0; s < kStreams; ++s) {
#pragma GCC unroll 4
      for (int w = 0; w < kWidth; ++w) {
        term(row + s, w, values);
#pragma GCC unroll 2
        for (int t = 0; t < kTerms; ++t) sums[s][t][w] += values[t];
      }
    }
  }
  for (; row < rows; ++row) {
    for (int w = 0; w < kWidth; ++w) {
      term(row, w, values);
      for (int t = 0; t < kTerms; ++t) sums[0][t][w] += values[t];
    }
  }
#pragma GCC unroll 4
  for (int half = kStreams / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
    for (int s = 0; s < half; ++s) {
#pragma GCC unroll 2
      for (int t = 0; t < kTerms; ++t) {
#pragma GCC unroll 4
        for (int w = 0; w < kWidth; ++w) sums[s][t][w] += sums[s + half][t][w];
      }
    }
  }
  for (int t = 0; t < kTerms; ++t) {
    for (int w = 0; w < kWidth; ++w) total[t][w] = sums[0][t][w];
  }
}

}  // namespace lockstep::ops
