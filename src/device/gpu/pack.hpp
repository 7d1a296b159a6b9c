// Neighbouring elements that a thread reads or writes by one instruction: 16 bytes are the most that a GPU moves for a
// thread at once, and the more it moves, the fewer instructions and waits there are.
#pragma once

#include "core/host_device.hpp"

namespace lockstep::device {

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T at[kCount];
};

/// Elements of T in 16 bytes.
template <class T>
inline constexpr int kPacked = 16 / static_cast<int>(sizeof(T));

/// `from` must be a multiple of the pack's size.
template <int kCount, class T>
LOCKSTEP_HOST_DEVICE Pack<T, kCount> read_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, kCount>*>(from);
}
template <class T, int kCount>
LOCKSTEP_HOST_DEVICE void write_pack(T* to, const Pack<T, kCount>& pack) {
  *reinterpret_cast<Pack<T, kCount>*>(to) = pack;
}

}  // namespace lockstep::device
