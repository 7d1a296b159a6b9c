// Whatever a GPU may do in any order is done in a random one: streams, blocks, warps, and the lanes of some warps. One
// seed, one order; seed 0: in order of their numbers.
#pragma once

#include <algorithm>
#include <random>

#include "cuda/interpreter/types.hpp"

namespace lockstep::ptx {

class Draw {
 public:
  explicit Draw(u32 seed) : seed_(seed), random_(seed) {}

  /// A number in 0 ... n - 1.
  u32 below(u32 n) { return seed_ == 0 ? 0 : static_cast<u32>(random_() % n); }
  template <class Range>
  void shuffle(Range& range) {
    if (seed_ != 0) std::shuffle(range.begin(), range.end(), random_);
  }
  /// Whether a warp's lanes run one by one: one warp in `kTogether`.
  bool goes_apart() { return seed_ != 0 && below(kTogether) == 0; }

 private:
  static constexpr u32 kTogether = 64;
  u32 seed_;
  std::mt19937 random_;
};

}  // namespace lockstep::ptx
