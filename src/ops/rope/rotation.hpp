// The angles of rope. Pair i of a head of `size` elements turns by base^(-2 i / size) radians a position. Angles are
// computed in double, in turns, so that a far position loses no digits; the same code runs on CPUs and GPUs, so both
// have the same bits.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "core/host_device.hpp"
#include "core/vectorize.hpp"
#include "lockstep/attributes.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::ops {

/// Pairs of a head; a GPU kernel's arguments have a fixed size.
inline constexpr std::int64_t kRopePairs = 256;

struct Rotation {
  float cosine, sine;
};

/// For less than 2^51 turns. Taylor's polynomials within an eighth of a turn of a quarter: exact to 2e-10.
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE Rotation rotation_by(double turns) {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to the nearest integer
  const double part = turns - ((turns + kRound) - kRound);
  const double quarter = (4 * part + kRound) - kRound;
  const double x = (part - 0.25 * quarter) * 6.283185307179586;
  const double square = x * x;
  double sine = -1.0 / 39916800;
  sine = sine * square + 1.0 / 362880;
  sine = sine * square - 1.0 / 5040;
  sine = sine * square + 1.0 / 120;
  sine = sine * square - 1.0 / 6;
  sine = sine * square * x + x;
  double cosine = -1.0 / 3628800;
  cosine = cosine * square + 1.0 / 40320;
  cosine = cosine * square - 1.0 / 720;
  cosine = cosine * square + 1.0 / 24;
  cosine = cosine * square - 1.0 / 2;
  cosine = cosine * square + 1;
  const std::int32_t quarters = static_cast<std::int32_t>(quarter) & 3;
  const double along = (quarters & 1) != 0 ? sine : cosine, across = (quarters & 1) != 0 ? cosine : sine;
  return {static_cast<float>(((quarters + 1) & 2) != 0 ? -along : along),
          static_cast<float>((quarters & 2) != 0 ? -across : across)};
}

/// Of each pair of a head.
struct RopeAngles {
  std::array<double, kRopePairs> turns{};  ///< a position

  RopeAngles(double base, std::int64_t pairs) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double radians = std::pow(base, -static_cast<double>(i) / pairs);
      turns[i] = radians / 6.283185307179586;
    }
  }
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE Rotation at(std::int64_t position, std::int64_t pair) const {
    return rotation_by(position * turns[pair]);
  }
};

/// The sizes of a rope: [batch, positions, heads, 2, pairs], where element (0, i) is turned with element (1, i).
struct RopeSizes {
  std::int64_t batch = 0, positions = 0, heads = 1, pairs = 0;

  RopeSizes(const Attributes& attributes, const Shape& x)
      : batch(x[0]), positions(x[1]), heads(attributes.integer("heads")), pairs(x[2] / heads / 2) {}
  std::int64_t all_pairs() const { return batch * positions * heads * pairs; }
};

}  // namespace lockstep::ops
