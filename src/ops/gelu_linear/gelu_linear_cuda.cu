#include "device/cuda/cuda_grid.cuh"
#include "ops/gelu_linear/gelu_linear_grid.hpp"
#include "ops/linear/lt_linear.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_gelu_linear_cuda(const KernelRequest& request) {
  return make_gelu_linear_layer<device::CudaGrid>(request, make_lt_linear(request, GeluAt::input));
}

}  // namespace lockstep::ops
