// linear's sizes, and its three products as cuBLAS sees them.
#pragma once

#include "backend/gpu/column_product.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

/// x [rows, in], weight [out, in], y [rows, out]
struct LinearSizes {
  std::int64_t rows, in, out;
};

inline LinearSizes linear_sizes(const KernelRequest& request) {
  const Shape& weight = request.parameters[0].shape;
  const std::int64_t in = weight[1], out = weight[0];
  return {in == 0 ? 0 : request.inputs[0].elements() / in, in, out};
}

// Our matrices are row-major, which to cuBLAS are their transposes: x [rows, in] has `in` rows and `rows` columns
// there.

/// y = x * weight^T is y^T [out, rows] = weight * x^T. Factors: weight, x.
inline backend::ColumnProduct output_product(const LinearSizes& s) {
  return {{s.in, s.out, true}, {s.in, s.rows, false}};
}
/// dx = dy * weight is dx^T [in, rows] = weight^T * dy^T. Factors: weight, dy.
inline backend::ColumnProduct input_gradient_product(const LinearSizes& s) {
  return {{s.in, s.out, false}, {s.out, s.rows, false}};
}
/// dw = dy^T * x is dw^T [in, out] = x^T * dy. Factors: x, dy.
inline backend::ColumnProduct weight_gradient_product(const LinearSizes& s) {
  return {{s.in, s.rows, false}, {s.out, s.rows, true}};
}

}  // namespace lockstep::ops
