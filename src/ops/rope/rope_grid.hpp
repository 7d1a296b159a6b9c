// rope on a Grid, one thread per pair of elements.
#pragma once

#include <memory>

#include "core/divisor.hpp"
#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/rope/rotation.hpp"

namespace lockstep::ops {

/// y may be x.
template <class T>
struct RopeFunctor {
  const T* x;
  T* y;
  RopeAngles angles;
  Divisor positions, heads, pairs;
  float direction;  ///< -1 turns back
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t head = i / pairs, pair = i % pairs, position = head / heads % positions;
    const std::int64_t at = 2 * head * pairs.value() + pair, partner = at + pairs.value();
    const Rotation rotation = angles.at(position, pair);
    const float first = x[at], second = x[partner], sine = direction * rotation.sine;
    y[at] = first * rotation.cosine - second * sine;
    y[partner] = second * rotation.cosine + first * sine;
  }
};

template <class Grid, class T>
class RopeGrid final : public Kernel {
 public:
  RopeGrid(const RopeSizes& sizes, double base) : sizes_(sizes), angles_(base, sizes.pairs) {}

  void forward(const ForwardCall& call) override { turn(stream_of(call), input<T>(call), output<T>(call), 1); }
  void backward(const BackwardCall& call) override {
    if (input_gradient<T>(call) == nullptr) return;
    turn(stream_of(call), output_gradient<T>(call), input_gradient<T>(call), -1);
  }

 private:
  void turn(GpuStream* stream, const T* x, T* y, float direction) const {
    Grid::each(stream, sizes_.all_pairs(),
               RopeFunctor<T>{x, y, angles_, Divisor(sizes_.positions), Divisor(sizes_.heads), Divisor(sizes_.pairs),
                              direction});
  }

  RopeSizes sizes_;
  RopeAngles angles_;
};

template <class Grid>
std::unique_ptr<Kernel> make_rope_grid(const KernelRequest& request) {
  const RopeSizes sizes(*request.attributes, request.inputs[0].shape);
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<RopeGrid<Grid, T>>(sizes, request.attributes->number("base"));
  });
}

}  // namespace lockstep::ops
