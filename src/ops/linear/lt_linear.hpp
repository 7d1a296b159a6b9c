// linear's products by cuBLASLt (linear_cuda.cu).
#pragma once

#include "ops/linear/gelu_products.hpp"
#include "ops/linear/linear_forms.hpp"

namespace lockstep::ops {

/// For linear, linear_gelu and gelu_linear. Without a stream, which libraries need, all by kernels of our own. Null
/// where linear_grid.hpp has none.
[[nodiscard]] std::unique_ptr<GeluProducts> make_lt_linear(const KernelRequest& request, GeluAt gelu);

}  // namespace lockstep::ops
