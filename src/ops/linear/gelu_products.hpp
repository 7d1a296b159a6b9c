// linear's products with gelu (its tanh form) behind them or before them: of linear_gelu and gelu_linear.
#pragma once

#include "ops/product_layer_grid.hpp"

namespace lockstep::ops {

class GeluProducts : public LayerProducts {
 public:
  /// pre = x * weight^T + bias and y = gelu(pre), which is taken of pre before it is rounded. `bias`: null where there
  /// is none.
  virtual void output_and_gelu(const ProductCall& call, const void* x, const void* weight, const float* bias, void* pre,
                               void* y) = 0;
  /// dpre = (dz * weight) * gelu'(pre), rounded once.
  virtual void gelu_input_gradient(const ProductCall& call, const void* dz, const void* weight, const void* pre,
                                   void* dpre) = 0;
};

}  // namespace lockstep::ops
