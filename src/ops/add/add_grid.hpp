// add over a Grid: inputs from left to right.
#pragma once

#include "ops/elementwise_grid.hpp"

namespace lockstep::ops {

template <class Grid>
class AddGrid final : public Kernel {
 public:
  explicit AddGrid(std::int64_t n) : n_(n) {}

  void forward(const ForwardCall& call) override {
    const float* sum = input(call, 0);
    for (std::size_t i = 1; i < call.inputs.size(); ++i, sum = output(call)) {
      Grid::each(call.queue, n_, backend::AddBody{sum, input(call, i), output(call)});
    }
  }
  void backward(const BackwardCall& call) override {
    for (std::size_t i = 0; i < call.input_gradients.size(); ++i) {
      float* dx = input_gradient(call, i);
      if (dx != nullptr) Grid::each(call.queue, n_, backend::CopyBody{output_gradient(call), dx});
    }
  }

 private:
  std::int64_t n_;
};

template <class Grid>
std::unique_ptr<Kernel> make_add_grid(const KernelRequest& request) {
  return std::make_unique<AddGrid<Grid>>(request.outputs[0].elements());
}

}  // namespace lockstep::ops
