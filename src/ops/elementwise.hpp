// Shared by ops that keep the shape: shape rule, cost, and typed access to a call's tensors.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "lockstep/op.hpp"

namespace lockstep::ops {

inline Signature same_shape(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs) {
  Signature signature;
  signature.outputs.push_back(inputs[0]);
  return signature;
}

/// The same for an op on floats. Throws Error(configuration) that begins with `op`.
[[nodiscard]] Signature same_floats(const std::string& op, const TensorSpec& input);

/// Operations per element, forward and backward.
template <int Forward, int Backward>
Cost elementwise_cost(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs, const Signature& /*s*/) {
  const double n = inputs[0].elements();
  return {Forward * n, Backward * n};
}

/// Factory for a kernel whose constructor takes the request.
template <class MadeKernel>
std::unique_ptr<Kernel> kernel_of(const KernelRequest& request) {
  return std::make_unique<MadeKernel>(request);
}

template <class T = float>
const T* input(const ForwardCall& call, std::size_t i = 0) {
  return static_cast<const T*>(call.inputs[i]);
}
template <class T = float>
const T* input(const BackwardCall& call, std::size_t i = 0) {
  return static_cast<const T*>(call.inputs[i]);
}
template <class T = float>
T* output(const ForwardCall& call, std::size_t i = 0) {
  return static_cast<T*>(call.outputs[i]);
}
template <class T = float>
const T* output_gradient(const BackwardCall& call, std::size_t i = 0) {
  return static_cast<const T*>(call.output_gradients[i]);
}
template <class T = float>
T* input_gradient(const BackwardCall& call, std::size_t i = 0) {
  return static_cast<T*>(call.input_gradients[i]);
}

}  // namespace lockstep::ops
