// linear, linear_gelu and gelu_linear by cuBLASLt (library_linear.hpp), and by the kernels of linear_grid.hpp if
// cuBLASLt has no plan.
#include "device/cuda/cuda_grid.cuh"
#include "device/cuda/lt_product.hpp"
#include "ops/linear/library_linear.hpp"

namespace lockstep::ops {

namespace {

using device::CudaGrid;

/// Without a GPU, which libraries need, only our own kernels. Null if linear_grid.hpp has none.
std::unique_ptr<GeluProducts> make_lt_linear(const KernelRequest& request, GeluAt gelu) {
  auto own = make_linear_products<CudaGrid>(request);
  if (own == nullptr || request.gpu == nullptr) return own;
  return std::make_unique<LibraryLinear<CudaGrid, device::LtProduct>>(request, gelu, std::move(own));
}

}  // namespace

std::unique_ptr<Kernel> make_linear_cuda(const KernelRequest& request) {
  return make_product_layer<CudaGrid>(request, make_lt_linear(request, GeluAt::none));
}

std::unique_ptr<Kernel> make_linear_gelu_cuda(const KernelRequest& request) {
  return make_linear_gelu_layer<CudaGrid>(request, make_lt_linear(request, GeluAt::output));
}

std::unique_ptr<Kernel> make_gelu_linear_cuda(const KernelRequest& request) {
  return make_gelu_linear_layer<CudaGrid>(request, make_lt_linear(request, GeluAt::input));
}

}  // namespace lockstep::ops
