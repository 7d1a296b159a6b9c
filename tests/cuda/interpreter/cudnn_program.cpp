#include "cuda/interpreter/cudnn_program.hpp"

#include <algorithm>
#include <utility>

#include "cuda/interpreter/cudnn_attention.hpp"
#include "cuda/interpreter/cudnn_convolution.hpp"

namespace lockstep::ptx {

std::shared_ptr<const CudnnProgram> CudnnProgram::of(const CudnnDescriptor& graph) {
  const auto is_of_attention = [](const std::shared_ptr<CudnnDescriptor>& operation) {
    return operation->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR ||
           operation->type == CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR;
  };
  if (std::ranges::any_of(attribute_of(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS).of, is_of_attention)) {
    return std::make_shared<const AttentionProgram>(graph);
  }
  return std::make_shared<const ConvolutionProgram>(graph);
}

std::int64_t add_tensor(CudnnProgram::Tensors& to, const CudnnDescriptor& of, cudnnBackendAttributeName_t name) {
  CudnnTensor tensor = cudnn_tensor_of(*descriptor_of(of, name));
  const std::int64_t uid = tensor.uid;
  to.insert_or_assign(uid, std::move(tensor));
  return uid;
}

f64 CudnnProgram::bytes_in_memory() const {
  f64 bytes = 0;
  for (const auto& [uid, tensor] : tensors_) {
    if (tensor.is_virtual || tensor.is_by_value) continue;
    bytes += static_cast<f64>(tensor.elements()) * static_cast<f64>(bytes_of(tensor.element));
  }
  return bytes;
}

}  // namespace lockstep::ptx
