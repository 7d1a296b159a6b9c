// mul over a Grid. The gradient of an input is dy times the other inputs, from left to right.
#pragma once

#include "ops/elementwise_grid.hpp"

namespace lockstep::ops {

template <class Grid>
class MulGrid final : public Kernel {
 public:
  explicit MulGrid(std::int64_t n) : n_(n) {}

  void forward(const ForwardCall& call) override {
    const float* product = input(call, 0);
    for (std::size_t i = 1; i < call.inputs.size(); ++i, product = output(call)) {
      Grid::each(call.queue, n_, MapPairBody<Product>{product, input(call, i), output(call)});
    }
  }
  void backward(const BackwardCall& call) override {
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      float* dx = input_gradient(call, i);
      if (dx != nullptr) gradient(call, i, dx);
    }
  }

 private:
  void gradient(const BackwardCall& call, std::size_t wanted, float* dx) const {
    const float* product = output_gradient(call);
    for (std::size_t other = 0; other < call.inputs.size(); ++other) {
      if (other == wanted) continue;
      Grid::each(call.queue, n_, MapPairBody<Product>{product, input(call, other), dx});
      product = dx;
    }
  }
  std::int64_t n_;
};

template <class Grid>
std::unique_ptr<Kernel> make_mul_grid(const KernelRequest& request) {
  return std::make_unique<MulGrid<Grid>>(request.outputs[0].elements());
}

}  // namespace lockstep::ops
