// linear_gelu over a Grid: linear's kernels, of which that for the output also takes gelu.
#pragma once

#include "ops/linear/linear_grid.hpp"

namespace lockstep::ops {

template <class Grid>
class LinearGelu final : public ProductLayer<Grid, GeluProducts> {
 public:
  using ProductLayer<Grid, GeluProducts>::ProductLayer;

 private:
  void make_output(const ProductCall& to, const ForwardCall& call, const void* x, const float* bias) override {
    this->products().output_and_gelu(to, x, call.parameters[0], bias, call.outputs[0], call.outputs[1]);
  }
};

/// Null where pre and y are of two types, or for null.
template <class Grid>
std::unique_ptr<Kernel> make_linear_gelu_layer(const KernelRequest& request, std::unique_ptr<GeluProducts> products) {
  if (products == nullptr || request.outputs[0].dtype != request.outputs[1].dtype) return nullptr;
  return std::make_unique<LinearGelu<Grid>>(request, std::move(products));
}

template <class Grid>
std::unique_ptr<Kernel> make_linear_gelu_grid(const KernelRequest& request) {
  return make_linear_gelu_layer<Grid>(request, make_linear_products<Grid>(request));
}

}  // namespace lockstep::ops
