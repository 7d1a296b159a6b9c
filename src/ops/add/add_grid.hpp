// add over a Grid: inputs from left to right.
#pragma once

#include "ops/elementwise_grid.hpp"
#include "ops/relu/relu_grid.hpp"

namespace lockstep::ops {

struct AddRelu {
  static LOCKSTEP_HOST_DEVICE float of(float left, float right) { return ReluForward::of(left + right); }
};

template <class Grid, class T>
class AddGrid final : public Kernel {
 public:
  AddGrid(std::int64_t n, bool relu) : n_(n), relu_(relu) {}

  void forward(const ForwardCall& call) override {
    const T* sum = input<T>(call, 0);
    for (std::size_t i = 1; i < call.inputs.size(); ++i, sum = output<T>(call)) {
      if (relu_ && i + 1 == call.inputs.size()) {
        Grid::each(stream_of(call), n_, MapPairFunctor<AddRelu, T>{sum, input<T>(call, i), output<T>(call)});
      } else {
        Grid::each(stream_of(call), n_, device::AddFunctor<T>{sum, input<T>(call, i), output<T>(call)});
      }
    }
  }
  /// With relu, the gradient of all inputs is made once, where the first one's is.
  void backward(const BackwardCall& call) override {
    if (relu_) {
      const auto* y = static_cast<const T*>(call.outputs[0]);
      return Grid::each(stream_of(call), n_,
                        MapPairFunctor<ReluGradient, T>{y, output_gradient<T>(call), input_gradient<T>(call)});
    }
    for (std::size_t i = 0; i < call.input_gradients.size(); ++i) {
      T* dx = input_gradient<T>(call, i);
      if (dx != nullptr) Grid::each(stream_of(call), n_, device::CopyFunctor<T>{output_gradient<T>(call), dx});
    }
  }

 private:
  std::int64_t n_;
  bool relu_;
};

template <class Grid>
std::unique_ptr<Kernel> make_add_grid(const KernelRequest& request) {
  if (rounds_between(request)) return nullptr;
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<AddGrid<Grid, T>>(request.outputs[0].elements(), request.epilogue == "relu");
  });
}

}  // namespace lockstep::ops
