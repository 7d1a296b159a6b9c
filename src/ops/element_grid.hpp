// Selects the Grid kernel for a request by the type of its elements. A kernel whose functor reads and writes
// low-precision elements is made by make_for_elements(); if an op has none for a type, the float32 kernel is used with
// casts around it (ops/upcast.hpp).
#pragma once

#include <memory>
#include <optional>

#include "device/gpu/elements.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

constexpr bool is_element(DType dtype) {
  return dtype == DType::f32 || is_low_precision(dtype);
}

/// The common type of all inputs and outputs that are not integers; none if they differ.
inline std::optional<DType> common_element(const KernelRequest& request) {
  std::optional<DType> common;
  for (const auto* list : {&request.inputs, &request.outputs}) {
    for (const TensorSpec& spec : *list) {
      if (!is_element(spec.dtype)) continue;
      if (common && *common != spec.dtype) return std::nullopt;
      common = spec.dtype;
    }
  }
  return common;
}

/// For an op that processes its inputs one after another and keeps intermediate results in its output: whether
/// low-precision elements would be rounded at each step and not only at the end.
inline bool rounds_between(const KernelRequest& request) {
  return request.inputs.size() > 2 && common_element(request) != DType::f32;
}

/// Calls make(T{}) with the C++ type of the request's common element; null if there is none.
template <class Make>
std::unique_ptr<Kernel> make_for_elements(const KernelRequest& request, const Make& make) {
  const auto element = common_element(request);
  if (!element) return nullptr;
  return device::with_element(*element, [&]<class T>(T value) -> std::unique_ptr<Kernel> { return make(value); });
}

/// The same for a kernel that exists for float32 only.
template <class Make>
std::unique_ptr<Kernel> make_for_float32(const KernelRequest& request, const Make& make) {
  if (common_element(request) != DType::f32 || request.compute_type != DType::f32) return nullptr;
  return make();
}

}  // namespace lockstep::ops
