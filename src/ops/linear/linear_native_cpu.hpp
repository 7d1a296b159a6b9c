// linear in bfloat16 by oneDNN's inner product: float32's kernel (linear_cpu.cpp) is gemm's.
#pragma once

#include <memory>

#include "lockstep/op.hpp"

namespace lockstep::ops {

/// As make_dnnl_layer(), for requests that multiplies_natively() (ops/dnnl_layer_cpu.hpp).
[[nodiscard]] std::unique_ptr<Kernel> make_linear_native(const KernelRequest& request);

}  // namespace lockstep::ops
