// Rows that a group keeps in shared memory while it computes. They are read once, 16 bytes by an instruction and all
// that a lane reads before it waits for the first, whatever is computed of them then. Lanes' sums are of elements that
// lie apart (grid.hpp), which no instruction reads from memory together; shared memory gives them in any order.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "device/gpu/pack.hpp"

namespace lockstep::device {

/// Bytes of shared memory that a block has without asking for more.
inline constexpr std::int64_t kSharedBytes = std::int64_t{48} * 1024;
/// Floats from the memory of one group of a block to that of the next, for groups that keep so many. A warp has two
/// groups: this way they use different halves of the 32 banks.
constexpr std::int64_t staged_step(std::int64_t floats) {
  return (floats + 15) / 32 * 32 + 16;
}
/// Groups of a block, 16, 8, 4 or 2: as many as find room. 0: there is none for the two of a warp.
constexpr int staged_groups(std::int64_t floats, int most) {
  const auto bytes = static_cast<std::int64_t>(sizeof(float)) * staged_step(floats);
  int groups = most;
  while (groups > 1 && groups * bytes > kSharedBytes) groups /= 2;
  return groups > 1 ? groups : 0;
}

/// Whether a group can keep `rows` rows of `size` elements of T, which begin at multiples of 16 bytes.
template <class T>
constexpr bool can_be_staged(std::int64_t rows, std::int64_t size, int most_groups) {
  return size > 0 && size % kPacked<T> == 0 && staged_groups(rows * size, most_groups) > 0;
}

/// Packs that a lane reads before it writes the first. Behind a row's end it reads one of its own again, so that no
/// load depends on a branch.
inline constexpr int kStagedPacks = 8;

/// to[i] = from[i] for a lane's packs of a row of n, in shared memory.
template <int kLanes, class T>
LOCKSTEP_HOST_DEVICE void stage_for_lane(int lane, std::int64_t n, const T* from, float* to) {
  constexpr int kCount = kPacked<T>;
  const std::int64_t packs = n / kCount;
  for (std::int64_t first = lane; first < packs; first += kStagedPacks * kLanes) {
    Pack<T, kCount> read[kStagedPacks];
    LOCKSTEP_UNROLL
    for (int k = 0; k < kStagedPacks; ++k) {
      const std::int64_t pack = first + k * kLanes;
      read[k] = read_pack<kCount>(from + (pack < packs ? pack : first) * kCount);
    }
    LOCKSTEP_UNROLL
    for (int k = 0; k < kStagedPacks; ++k) {
      const std::int64_t pack = first + k * kLanes;
      if (pack >= packs) continue;
      LOCKSTEP_UNROLL
      for (int at = 0; at < kCount; at += 4) {
        write_pack(to + pack * kCount + at,
                   Pack<float, 4>{read[k].at[at], read[k].at[at + 1], read[k].at[at + 2], read[k].at[at + 3]});
      }
    }
  }
}

/// to[i] = from[i] * factors[i] likewise; factors, too, begin at a multiple of 16 bytes.
template <int kLanes, class T>
LOCKSTEP_HOST_DEVICE void stage_product_for_lane(int lane, std::int64_t n, const T* from, const float* factors,
                                                 float* to) {
  constexpr int kCount = kPacked<T>, kFours = kCount / 4, kPacks = kStagedPacks / 2;
  const std::int64_t packs = n / kCount;
  for (std::int64_t first = lane; first < packs; first += kPacks * kLanes) {
    Pack<T, kCount> read[kPacks];
    Pack<float, 4> by[kPacks][kFours];
    LOCKSTEP_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      const std::int64_t pack = first + k * kLanes, i = (pack < packs ? pack : first) * kCount;
      read[k] = read_pack<kCount>(from + i);
      LOCKSTEP_UNROLL
      for (int four = 0; four < kFours; ++four) by[k][four] = read_pack<4>(factors + i + 4 * four);
    }
    LOCKSTEP_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      const std::int64_t pack = first + k * kLanes;
      if (pack >= packs) continue;
      LOCKSTEP_UNROLL
      for (int four = 0; four < kFours; ++four) {
        LOCKSTEP_UNROLL
        for (int e = 0; e < 4; ++e) by[k][four].at[e] = read[k].at[4 * four + e] * by[k][four].at[e];
        write_pack(to + pack * kCount + 4 * four, by[k][four]);
      }
    }
  }
}

/// Writes make(i), a Pack<T, kPacked<T>>, to `to` + i for a lane's packs of a row of n. make(i) may read what is there.
template <int kLanes, class T, class Make>
LOCKSTEP_HOST_DEVICE void write_packs_for_lane(int lane, std::int64_t n, T* to, const Make& make) {
  constexpr int kCount = kPacked<T>, kPacks = kStagedPacks / 2;
  const std::int64_t packs = n / kCount;
  for (std::int64_t first = lane; first < packs; first += kPacks * kLanes) {
    Pack<T, kCount> made[kPacks];
    LOCKSTEP_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      const std::int64_t pack = first + k * kLanes;
      made[k] = make((pack < packs ? pack : first) * kCount);
    }
    LOCKSTEP_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      if (const std::int64_t pack = first + k * kLanes; pack < packs) write_pack(to + pack * kCount, made[k]);
    }
  }
}

/// The pack of T of which elements i ... i + 3 are four(i), a Pack<float, 4>, and so on.
template <class T, class Four>
LOCKSTEP_HOST_DEVICE Pack<T, kPacked<T>> pack_of_fours(std::int64_t i, const Four& four) {
  Pack<T, kPacked<T>> pack;
  LOCKSTEP_UNROLL
  for (int at = 0; at < kPacked<T>; at += 4) {
    const Pack<float, 4> some = four(i + at);
    LOCKSTEP_UNROLL
    for (int e = 0; e < 4; ++e) pack.at[at + e] = some.at[e];
  }
  return pack;
}

}  // namespace lockstep::device
