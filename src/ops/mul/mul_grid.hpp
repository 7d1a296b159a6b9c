// mul over a Grid. The gradient of an input is dy times the other inputs, from left to right.
#pragma once

#include "ops/elementwise_grid.hpp"

namespace lockstep::ops {

template <class Grid, class T>
class MulGrid final : public Kernel {
 public:
  explicit MulGrid(std::int64_t n) : n_(n) {}

  void forward(const ForwardCall& call) override {
    const T* product = input<T>(call, 0);
    for (std::size_t i = 1; i < call.inputs.size(); ++i, product = output<T>(call)) {
      Grid::each(stream_of(call), n_, MapPairFunctor<Product, T>{product, input<T>(call, i), output<T>(call)});
    }
  }
  void backward(const BackwardCall& call) override {
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      T* dx = input_gradient<T>(call, i);
      if (dx != nullptr) gradient(call, i, dx);
    }
  }

 private:
  void gradient(const BackwardCall& call, std::size_t wanted, T* dx) const {
    const T* product = output_gradient<T>(call);
    for (std::size_t other = 0; other < call.inputs.size(); ++other) {
      if (other == wanted) continue;
      Grid::each(stream_of(call), n_, MapPairFunctor<Product, T>{product, input<T>(call, other), dx});
      product = dx;
    }
  }
  std::int64_t n_;
};

template <class Grid>
std::unique_ptr<Kernel> make_mul_grid(const KernelRequest& request) {
  if (rounds_between(request)) return nullptr;
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<MulGrid<Grid, T>>(request.outputs[0].elements());
  });
}

}  // namespace lockstep::ops
