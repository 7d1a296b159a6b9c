#include "cuda/interpreter/cudnn_descriptors.hpp"

#include <fmt/format.h>

#include <functional>
#include <numeric>
#include <stdexcept>

namespace lockstep::ptx {

namespace {

Element cudnn_element(cudnnDataType_t type, bool is_virtual) {
  if (type == CUDNN_DATA_FLOAT) return Element::fp32;
  if (type == CUDNN_DATA_HALF) return Element::fp16;
  if (type == CUDNN_DATA_BFLOAT16) return Element::bf16;
  // Positions and truth values between two operations: floats hold them exactly.
  if (is_virtual && (type == CUDNN_DATA_INT32 || type == CUDNN_DATA_BOOLEAN)) return Element::fp32;
  cudnn_unknown(fmt::format("type {}", static_cast<int>(type)));
}

}  // namespace

void cudnn_unknown(const std::string& what) {
  throw std::runtime_error(what + " isn't known");
}

const CudnnDescriptor::Attribute& attribute_of(const CudnnDescriptor& of, cudnnBackendAttributeName_t name) {
  const auto found = of.attributes.find(name);
  if (found == of.attributes.end()) {
    throw std::runtime_error(
        fmt::format("a descriptor {} without its attribute {}", static_cast<int>(of.type), static_cast<int>(name)));
  }
  return found->second;
}

std::shared_ptr<CudnnDescriptor> descriptor_of(const CudnnDescriptor& of, cudnnBackendAttributeName_t name) {
  return attribute_of(of, name).of.at(0);
}

std::int64_t CudnnTensor::elements() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

CudnnTensor cudnn_tensor_of(const CudnnDescriptor& of) {
  const bool is_virtual = value_of(of, CUDNN_ATTR_TENSOR_IS_VIRTUAL, false);
  CudnnTensor tensor{.uid = value_of<std::int64_t>(of, CUDNN_ATTR_TENSOR_UNIQUE_ID),
                     .element = cudnn_element(value_of<cudnnDataType_t>(of, CUDNN_ATTR_TENSOR_DATA_TYPE), is_virtual),
                     .is_virtual = is_virtual,
                     .is_by_value = value_of(of, CUDNN_ATTR_TENSOR_IS_BY_VALUE, false),
                     .alignment = value_of<std::int64_t>(of, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
                     .sizes = values_of<std::int64_t>(of, CUDNN_ATTR_TENSOR_DIMENSIONS),
                     .strides = values_of<std::int64_t>(of, CUDNN_ATTR_TENSOR_STRIDES)};
  if (tensor.is_by_value) {
    if (tensor.elements() != 1 || tensor.element != Element::fp32) cudnn_unknown("a value that is no float");
    tensor.sizes = tensor.strides = {1, 1, 1, 1};
  }
  if (tensor.sizes.size() != 4 || tensor.strides.size() != 4) cudnn_unknown("a tensor of another number of dimensions");
  return tensor;
}

}  // namespace lockstep::ptx
