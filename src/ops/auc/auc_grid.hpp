// auc on a Grid, an element each.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_element_grid.hpp"

namespace lockstep::ops {

struct ScoreAndTargetFunctor {
  const float* x;
  ElementTarget<true> target;
  float* to;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    to[2 * i] = x[i];
    to[2 * i + 1] = target.at(i) > 0.5F ? 1.0F : 0.0F;
  }
};

struct CountElementsFunctor {
  float* count;
  float size;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t sample) const { count[sample] = size; }
};

template <class Grid>
class AucGrid final : public Kernel {
 public:
  explicit AucGrid(const KernelRequest& request) : rows_(request) {}

  void forward(const ForwardCall& call) override {
    Grid::each(stream_of(call), rows_.elements(),
               ScoreAndTargetFunctor{input(call), {rows_, call.inputs[1]}, output(call)});
    Grid::each(stream_of(call), rows_.batch, CountElementsFunctor{output(call, 1), static_cast<float>(rows_.size)});
  }

 private:
  ElementRows rows_;
};

template <class Grid>
std::unique_ptr<Kernel> make_auc_grid(const KernelRequest& request) {
  return make_for_float32(request, [&] { return std::make_unique<AucGrid<Grid>>(request); });
}

}  // namespace lockstep::ops
