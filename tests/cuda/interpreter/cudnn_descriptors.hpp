// The objects of cuDNN's backend: what was said of them, and tensors as they describe them.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/interpreter/library_elements.hpp"

namespace lockstep::ptx {

struct CudnnDescriptor {
  struct Attribute {
    cudnnBackendAttributeType_t type{};
    std::int64_t count = 0;
    std::vector<u8> bytes;
    std::vector<std::shared_ptr<CudnnDescriptor>> of;  ///< instead of bytes, where the values are descriptors
  };
  cudnnBackendDescriptorType_t type{};
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
};

/// Throws std::runtime_error.
[[noreturn]] void cudnn_unknown(const std::string& what);

/// Throws where nothing was said; so do the functions below.
[[nodiscard]] const CudnnDescriptor::Attribute& attribute_of(const CudnnDescriptor& of,
                                                             cudnnBackendAttributeName_t name);
[[nodiscard]] std::shared_ptr<CudnnDescriptor> descriptor_of(const CudnnDescriptor& of,
                                                             cudnnBackendAttributeName_t name);

template <class Value>
[[nodiscard]] std::vector<Value> values_of(const CudnnDescriptor& of, cudnnBackendAttributeName_t name) {
  const auto& attribute = attribute_of(of, name);
  std::vector<Value> values;
  for (std::size_t at = 0; at + sizeof(Value) <= attribute.bytes.size(); at += sizeof(Value)) {
    Value value{};
    std::memcpy(&value, attribute.bytes.data() + at, sizeof value);
    values.push_back(value);
  }
  return values;
}
template <class Value>
[[nodiscard]] Value value_of(const CudnnDescriptor& of, cudnnBackendAttributeName_t name) {
  return values_of<Value>(of, name).at(0);
}
/// `otherwise`: nothing was said.
template <class Value>
[[nodiscard]] Value value_of(const CudnnDescriptor& of, cudnnBackendAttributeName_t name, Value otherwise) {
  return of.attributes.contains(name) ? value_of<Value>(of, name) : otherwise;
}

struct CudnnTensor {
  std::int64_t uid = 0;
  Element element = Element::fp32;
  bool is_virtual = false;   ///< it is in no memory
  bool is_by_value = false;  ///< a number in the host's memory, read by the call
  std::int64_t alignment = 1;
  std::vector<std::int64_t> sizes, strides;  ///< four of each

  [[nodiscard]] std::int64_t elements() const;
};
[[nodiscard]] CudnnTensor cudnn_tensor_of(const CudnnDescriptor& of);

}  // namespace lockstep::ptx
