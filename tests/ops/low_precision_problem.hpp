// Problems of the op driver in bfloat16 and float16.
#pragma once

#include <algorithm>
#include <vector>

#include "core/low_precision.hpp"
#include "ops/op_driver.hpp"

namespace lockstep::ops {

inline Tensor copied(const Tensor& tensor) {
  Tensor same(tensor.spec());
  std::copy_n(tensor.bytes(), tensor.spec().bytes(), same.bytes());
  return same;
}

inline std::vector<Tensor> copied(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> same;
  for (const Tensor& tensor : tensors) same.push_back(copied(tensor));
  return same;
}

inline void round_all(DType type, std::vector<Tensor>& tensors, bool only_matrices = false) {
  for (Tensor& tensor : tensors) {
    if (tensor.dtype() != DType::f32 || (only_matrices && tensor.shape().size() < 2)) continue;
    const Tensor wide = copied(tensor);
    round_to(type, wide.as<float>().data(), tensor.as<float>().data(), tensor.elements());
  }
}

inline Tensor downcast_of(DType type, const Tensor& tensor) {
  if (tensor.dtype() != DType::f32) return copied(tensor);
  Tensor short_one({type, tensor.shape()});
  downcast(type, tensor.as<float>().data(), short_one.as<std::uint16_t>().data(), tensor.elements());
  return short_one;
}

inline std::vector<Tensor> downcast_of(DType type, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> list;
  for (const Tensor& tensor : tensors) list.push_back(downcast_of(type, tensor));
  return list;
}

inline void lower_precision(DType type, std::vector<TensorSpec>& specs) {
  for (TensorSpec& spec : specs) {
    if (spec.dtype == DType::f32) spec.dtype = type;
  }
}

/// A kernel under test, and what it gets in low precision besides the products' operands.
struct Tested {
  KernelFactory make;
  bool takes_low_precision = false;  ///< from OpDef
  bool low_precision_weights = false;
  bool low_precision_inputs = true, low_precision_outputs = true;
  std::string epilogue;  ///< from KernelRequest
};

/// Like `wide`, whose values are already rounded; values that stay in float32 are not, since the kernel rounds them
/// itself.
inline Problem low_precision_problem_of(DType type, const Problem& wide, const OpCase& the_case, const Tested& tested) {
  Problem problem = make_problem(*wide.op, the_case);
  problem.epilogue = tested.epilogue;
  if (tested.low_precision_inputs) {
    problem.inputs = downcast_of(type, wide.inputs);
    lower_precision(type, problem.input_specs);
  }
  if (tested.low_precision_outputs) {
    problem.output_gradients = downcast_of(type, wide.output_gradients);
    lower_precision(type, problem.signature.outputs);
  }
  for (Tensor& tensor : problem.parameters) {
    if (tested.low_precision_weights && tensor.shape().size() > 1) tensor = downcast_of(type, tensor);
  }
  return problem;
}

/// The request for a low-precision problem, in the form that an executor makes it.
inline KernelRequest low_precision_request(DType type, const Problem& problem, KernelRequest request) {
  if (problem.op->multiplies) request.compute_type = type;
  for (std::size_t i = 0; i < request.parameters.size(); ++i) request.parameters[i] = problem.parameters[i].spec();
  return request;
}

}  // namespace lockstep::ops
