// r2 on a Grid, a group a sample.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_element.hpp"
#include "ops/r2/r2.hpp"

namespace lockstep::ops {

struct R2Functor {
  const float *x, *t;
  float *values, *count;
  std::int64_t size;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t sample) const {
    const float *prediction = x + sample * size, *target = t + sample * size;
    const float n = size;
    const float sum = group.sum(size, [=](std::int64_t i) { return target[i]; });
    const float mean = sum / n;
    const float spread = group.sum(size, [=](std::int64_t i) { return (target[i] - mean) * (target[i] - mean); });
    const float residual =
        group.sum(size, [=](std::int64_t i) { return (prediction[i] - target[i]) * (prediction[i] - target[i]); });
    float *to = values + sample * kR2Values, *count_to = count + sample;
    group.once([=] {
      const SplitSquare square = split_square(sum);
      to[kResidual] = residual;
      to[kSum] = sum;
      to[kSquare] = square.leading;
      to[kSquareRest] = square.rest;
      to[kSpread] = spread;
      to[kSample] = 1;
      *count_to = n;
    });
  }
};

template <class Grid>
class R2Grid final : public Kernel {
 public:
  explicit R2Grid(const KernelRequest& request) : rows_(request) {}

  void forward(const ForwardCall& call) override {
    Grid::rows(stream_of(call), rows_.batch,
               R2Functor{input(call), input(call, 1), output(call, 0), output(call, 1), rows_.size});
  }

 private:
  ElementRows rows_;
};

template <class Grid>
std::unique_ptr<Kernel> make_r2_grid(const KernelRequest& request) {
  return make_for_float32(request, [&] { return std::make_unique<R2Grid<Grid>>(request); });
}

}  // namespace lockstep::ops
