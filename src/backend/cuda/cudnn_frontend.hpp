// cuDNN's frontend as this room uses it, for its .cpp files only: it is large.
#pragma once

#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <vector>

#include "lockstep/tensor.hpp"

namespace lockstep::backend {

[[nodiscard]] inline cudnn_frontend::DataType_t cudnn_type(DType dtype) {
  using cudnn_frontend::DataType_t;
  return dtype == DType::bf16 ? DataType_t::BFLOAT16 : dtype == DType::f16 ? DataType_t::HALF : DataType_t::FLOAT;
}

/// Operands in this type, everything between them in fp32.
inline void set_cudnn_types(cudnn_frontend::graph::Graph& graph, DType operands) {
  graph.set_io_data_type(cudnn_type(operands))
      .set_intermediate_data_type(cudnn_frontend::DataType_t::FLOAT)
      .set_compute_data_type(cudnn_frontend::DataType_t::FLOAT);
}

}  // namespace lockstep::backend
