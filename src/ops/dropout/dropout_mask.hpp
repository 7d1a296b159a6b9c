// Which elements dropout keeps. Element e of a sample reads word (e / 16) mod 4 of the Philox block with counter (16 *
// (e / 64) + e mod 16, position): so 16 neighbours come from 16 counters, which vector code draws together.
#pragma once

#include <cstdint>

#include "lockstep/op.hpp"
#include "lockstep/random.hpp"

namespace lockstep::ops {

/// `layer`: hash_name() of the node.
constexpr std::uint64_t dropout_key(const StepContext& step, std::uint64_t layer) {
  return mix(mix(step.seed, layer), step.step);
}

/// An element whose word is below this is dropped.
inline std::uint32_t dropout_threshold(double rate) {
  return rate * 4294967296.0;
}

constexpr PhiloxWords dropout_counter(std::uint64_t block, std::uint64_t position) {
  return {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
          static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32)};
}

/// The word of one element; the scalar form of the rule above.
constexpr std::uint32_t dropout_word(std::uint64_t key, std::uint64_t position, std::uint64_t element) {
  const PhiloxWords words = philox(key, dropout_counter(16 * (element / 64) + element % 16, position));
  // Selected without an index: a GPU would keep an array in memory if its index is not known at compile time.
  const bool odd = element / 16 % 2 == 1, high = element / 32 % 2 == 1;
  return high ? (odd ? words[3] : words[2]) : (odd ? words[1] : words[0]);
}

}  // namespace lockstep::ops
