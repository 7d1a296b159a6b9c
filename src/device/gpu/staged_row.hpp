// Rows that a group keeps in shared memory while it computes. They are read once, in packs, and a lane asks for many
// before it waits for the first, whatever is computed of them then. Lanes' sums are of elements that lie apart
// (grid.hpp), which no instruction reads from memory together; shared memory gives them in any order.
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

/// Whether a group can keep `rows` rows of `size` elements in packs.
constexpr bool can_be_staged(std::int64_t rows, std::int64_t size, int most_groups) {
  return size > 0 && size % 4 == 0 && staged_groups(rows * size, most_groups) > 0;
}

// A lane's packs of four elements, by `kPacks` that it reads before it writes the first. Four of T, too, so that
// neighbouring lanes have neighbouring packs of floats; 16 bytes of a smaller T would be two packs of floats apart.
// Behind a row's end a lane reads one of its own packs again, so that no load depends on a branch.

/// write(i, read(i)) for the packs at i, i + 1, i + 2, i + 3 of a row of n.
template <int kLanes, int kPacks, class Read, class Write>
LOCKSTEP_HOST_DEVICE void for_packs_of_lane(int lane, std::int64_t n, const Read& read, const Write& write) {
  constexpr std::int64_t kPack = 4, kStep = kPack * kLanes;
  for (std::int64_t first = kPack * lane; first < n; first += kPacks * kStep) {
    decltype(read(first)) packs[kPacks];
    LOCKSTEP_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      const std::int64_t i = first + k * kStep;
      packs[k] = read(i < n ? i : first);
    }
    LOCKSTEP_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      if (const std::int64_t i = first + k * kStep; i < n) write(i, packs[k]);
    }
  }
}

template <class T>
LOCKSTEP_HOST_DEVICE Pack<float, 4> floats_of(const Pack<T, 4>& pack) {
  return {pack.at[0], pack.at[1], pack.at[2], pack.at[3]};
}

/// to[i] = from[i] for a lane's share of a row of n, in shared memory.
template <int kLanes, class T>
LOCKSTEP_HOST_DEVICE void stage_for_lane(int lane, std::int64_t n, const T* from, float* to) {
  for_packs_of_lane<kLanes, 12>(
      lane, n, [=](std::int64_t i) { return read_pack<4>(from + i); },
      [=](std::int64_t i, const Pack<T, 4>& pack) { write_pack(to + i, floats_of(pack)); });
}

/// to[i] = from[i] * factors[i] likewise.
template <int kLanes, class T>
LOCKSTEP_HOST_DEVICE void stage_product_for_lane(int lane, std::int64_t n, const T* from, const float* factors,
                                                 float* to) {
  struct Both {
    Pack<T, 4> from;
    Pack<float, 4> factors;
  };
  for_packs_of_lane<kLanes, 6>(
      lane, n,
      [=](std::int64_t i) {
        return Both{read_pack<4>(from + i), read_pack<4>(factors + i)};
      },
      [=](std::int64_t i, const Both& both) {
        Pack<float, 4> product = floats_of(both.from);
        LOCKSTEP_UNROLL
        for (int e = 0; e < 4; ++e) product.at[e] *= both.factors.at[e];
        write_pack(to + i, product);
      });
}

/// Writes make(i), a Pack<T, 4>, to `to` + i for a lane's packs of a row of n. make(i) may read what is there.
template <int kLanes, class T, class Make>
LOCKSTEP_HOST_DEVICE void write_packs_for_lane(int lane, std::int64_t n, T* to, const Make& make) {
  for_packs_of_lane<kLanes, 6>(lane, n, make,
                               [=](std::int64_t i, const Pack<T, 4>& pack) { write_pack(to + i, pack); });
}

template <class T>
LOCKSTEP_HOST_DEVICE Pack<T, 4> rounded(const Pack<float, 4>& floats) {
  Pack<T, 4> pack;
  LOCKSTEP_UNROLL
  for (int e = 0; e < 4; ++e) pack.at[e] = floats.at[e];
  return pack;
}

}  // namespace lockstep::device
