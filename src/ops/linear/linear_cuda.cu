// linear by cuBLASLt (library_linear.hpp), and by the kernels of linear_grid.hpp where that has nothing to offer.
#include "device/cuda/cuda_grid.cuh"
#include "device/cuda/lt_product.hpp"
#include "ops/linear/library_linear.hpp"
#include "ops/linear/linear_grid.hpp"
#include "ops/linear/lt_linear.hpp"

namespace lockstep::ops {

using device::CudaGrid;

std::unique_ptr<GeluProducts> make_lt_linear(const KernelRequest& request, GeluAt gelu) {
  auto own = make_linear_products<CudaGrid>(request);
  if (own == nullptr || request.gpu == nullptr) return own;
  return std::make_unique<LibraryLinear<CudaGrid, device::LtProduct>>(request, gelu, std::move(own));
}

std::unique_ptr<Kernel> make_linear_cuda(const KernelRequest& request) {
  return make_product_layer<CudaGrid>(request, make_lt_linear(request, GeluAt::none));
}

}  // namespace lockstep::ops
