// gelu_linear over a Grid: linear's kernels, of which that for the input's gradient goes on through gelu.
#pragma once

#include "ops/linear/linear_grid.hpp"

namespace lockstep::ops {

template <class Grid>
class GeluLinear final : public ProductLayer<Grid, GeluProducts> {
 public:
  using ProductLayer<Grid, GeluProducts>::ProductLayer;

 private:
  void make_input_gradient(const ProductCall& to, const BackwardCall& call, const void* dz) override {
    void* const dpre = call.input_gradients[1];
    if (dpre != nullptr) this->products().gelu_input_gradient(to, dz, call.parameters[0], call.inputs[1], dpre);
  }
};

/// Null where y and pre are not both of the products' type, or for null.
template <class Grid>
std::unique_ptr<Kernel> make_gelu_linear_layer(const KernelRequest& request, std::unique_ptr<GeluProducts> products) {
  const auto fits = [&](const TensorSpec& input) { return input.dtype == request.compute_type; };
  if (products == nullptr || !fits(request.inputs[0]) || !fits(request.inputs[1])) return nullptr;
  return std::make_unique<GeluLinear<Grid>>(request, std::move(products));
}

template <class Grid>
std::unique_ptr<Kernel> make_gelu_linear_grid(const KernelRequest& request) {
  return make_gelu_linear_layer<Grid>(request, make_linear_products<Grid>(request));
}

}  // namespace lockstep::ops
