// cuDNN's frontend, for .cpp files of this room only, because it is large.
#pragma once

#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "lockstep/tensor.hpp"

namespace lockstep::device {

[[nodiscard]] inline cudnn_frontend::DataType_t cudnn_type(DType dtype) {
  using cudnn_frontend::DataType_t;
  return dtype == DType::bf16 ? DataType_t::BFLOAT16 : dtype == DType::f16 ? DataType_t::HALF : DataType_t::FLOAT;
}

/// Operands have this type, everything in between is fp32.
inline void set_cudnn_types(cudnn_frontend::graph::Graph& graph, DType operands) {
  graph.set_io_data_type(cudnn_type(operands))
      .set_intermediate_data_type(cudnn_frontend::DataType_t::FLOAT)
      .set_compute_data_type(cudnn_frontend::DataType_t::FLOAT);
}

template <std::size_t kCount>
[[nodiscard]] std::vector<std::int64_t> as_list(const std::array<std::int64_t, kCount>& values) {
  return {values.begin(), values.end()};
}

/// `layout`: its sizes and strides.
template <class Layout>
[[nodiscard]] cudnn_frontend::graph::Tensor_attributes cudnn_tensor(const Layout& layout, std::int64_t name) {
  cudnn_frontend::graph::Tensor_attributes tensor;
  tensor.set_uid(name).set_dim(as_list(layout.sizes)).set_stride(as_list(layout.strides));
  return tensor;
}

template <class Layout>
void make_cudnn_output(cudnn_frontend::graph::Tensor_attributes& tensor, const Layout& layout, std::int64_t name) {
  tensor.set_output(true).set_uid(name).set_dim(as_list(layout.sizes)).set_stride(as_list(layout.strides));
}

/// ", 8 3 32 32 by 3072 1 96 3"
template <class Layout>
[[nodiscard]] std::string sizes_in_words(const Layout& layout) {
  return fmt::format(", {} by {}", fmt::join(layout.sizes, " "), fmt::join(layout.strides, " "));
}

}  // namespace lockstep::device
