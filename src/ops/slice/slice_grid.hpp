// slice on a Grid: forward a thread an element of the output, backward one of the input.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/gather_grid.hpp"
#include "ops/slice/slice_run.hpp"

namespace lockstep::ops {

template <class T>
struct SliceGradientFunctor {
  const T* dy;
  T* dx;
  SliceRun run;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const {
    const std::int64_t at = i % run.from - run.first;
    return at >= 0 && at < run.to ? float{dy[i / run.from * run.to + at]} : 0.0F;
  }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { dx[i] = value; }
};

template <class Grid, class T>
class SliceGrid final : public Kernel {
 public:
  explicit SliceGrid(const KernelRequest& request) : run_(slice_run(request)) {}

  void forward(const ForwardCall& call) override {
    Grid::each(stream_of(call), run_.outer * run_.to,
               GatherFunctor<SliceRun, T>{input<T>(call), output<T>(call), run_});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    Grid::each(stream_of(call), run_.outer * run_.from,
               SliceGradientFunctor<T>{output_gradient<T>(call), input_gradient<T>(call), run_});
  }

 private:
  SliceRun run_;
};

template <class Grid>
std::unique_ptr<Kernel> make_slice_grid(const KernelRequest& request) {
  return make_for_elements(request,
                           [&]<class T>(T /*element*/) { return std::make_unique<SliceGrid<Grid, T>>(request); });
}

}  // namespace lockstep::ops
