// What a library can do with the sums of a product besides writing them: its epilogue and the operands of that, in the
// terms of ColumnProduct. Vectors have no gaps; `aux` is a matrix like d: [m, n], column-major.
#pragma once

#include <cstdint>
#include <string>

#include "device/gpu/column_product.hpp"
#include "device/gpu/product_types.hpp"

namespace lockstep::device {

/// gelu is the tanh approximation. `s`: the sums, in fp32.
enum class Epilogue : std::uint8_t {
  none,           ///< d = s
  bias,           ///< d = s + bias [m], the same in each column
  gelu,           ///< aux = s, d = gelu(s)
  bias_gelu,      ///< aux = s + bias [m], d = gelu(s + bias)
  gelu_gradient,  ///< d = s * gelu'(aux)
  sums_of_b,      ///< d = s; also b_sums [n]: the sums over k of each column of b, in the orientation in which the
                  ///< product uses it
};

/// A way to compute a product.
struct ProductForm {
  ProductTypes types;
  Epilogue epilogue = Epilogue::none;
  DType bias = DType::f32;  ///< the type of bias, for bias and bias_gelu
  bool wide = false;        ///< the result is fp32, although the tensor is not: one of our kernels converts it
};

/// Addresses of the factors, the result, and what else the form needs; all others are null.
struct ProductOperands {
  const void *a = nullptr, *b = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
  float* b_sums = nullptr;
  void* written_aux = nullptr;  ///< for gelu and bias_gelu
  const void* aux = nullptr;    ///< for gelu_gradient
};

constexpr bool adds_bias(Epilogue epilogue) {
  return epilogue == Epilogue::bias || epilogue == Epilogue::bias_gelu;
}
constexpr bool writes_aux(Epilogue epilogue) {
  return epilogue == Epilogue::gelu || epilogue == Epilogue::bias_gelu;
}
constexpr bool has_aux(Epilogue epilogue) {
  return writes_aux(epilogue) || epilogue == Epilogue::gelu_gradient;
}

/// Elements from one column of aux to the next; it has d's type.
constexpr std::int64_t aux_stride(const ColumnProduct& product) {
  return product.m();
}
/// cuBLASLt requires a multiple of 8 for aux's stride.
constexpr bool aux_fits(const ColumnProduct& product) {
  return aux_stride(product) % 8 == 0;
}

/// The end of a plan's name, after the algorithm: ", gelu with its input kept". Different for all forms of a product.
[[nodiscard]] std::string suffix_of(const ProductForm& form);

}  // namespace lockstep::device
