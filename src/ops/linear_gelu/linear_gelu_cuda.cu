#include "device/cuda/cuda_grid.cuh"
#include "ops/linear/lt_linear.hpp"
#include "ops/linear_gelu/linear_gelu_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_linear_gelu_cuda(const KernelRequest& request) {
  return make_linear_gelu_layer<device::CudaGrid>(request, make_lt_linear(request, GeluAt::output));
}

}  // namespace lockstep::ops
