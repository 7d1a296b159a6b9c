// add over a Grid: inputs from left to right.
#pragma once

#include "ops/elementwise_grid.hpp"

namespace lockstep::ops {

template <class Grid, class T>
class AddGrid final : public Kernel {
 public:
  explicit AddGrid(std::int64_t n) : n_(n) {}

  void forward(const ForwardCall& call) override {
    const T* sum = input<T>(call, 0);
    for (std::size_t i = 1; i < call.inputs.size(); ++i, sum = output<T>(call)) {
      Grid::each(call.queue, n_, backend::AddBody<T>{sum, input<T>(call, i), output<T>(call)});
    }
  }
  void backward(const BackwardCall& call) override {
    for (std::size_t i = 0; i < call.input_gradients.size(); ++i) {
      T* dx = input_gradient<T>(call, i);
      if (dx != nullptr) Grid::each(call.queue, n_, backend::CopyBody<T>{output_gradient<T>(call), dx});
    }
  }

 private:
  std::int64_t n_;
};

template <class Grid>
std::unique_ptr<Kernel> make_add_grid(const KernelRequest& request) {
  if (rounds_between(request)) return nullptr;
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<AddGrid<Grid, T>>(request.outputs[0].elements());
  });
}

}  // namespace lockstep::ops
