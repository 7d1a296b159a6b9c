// What a library can do with the sums of a product beside writing them: its epilogue, and which operands that takes, in
// the terms of ColumnProduct. Vectors lie without gaps; `aux` is a matrix as d is, [m, n] by columns.
#pragma once

#include <cstdint>
#include <string>

#include "device/gpu/column_product.hpp"
#include "device/gpu/product_types.hpp"

namespace lockstep::device {

/// gelu is its tanh form. `s`: the sums, in fp32.
enum class Epilogue : std::uint8_t {
  none,           ///< d = s
  bias,           ///< d = s + bias [m], the same in each column
  gelu,           ///< aux = s, d = gelu(s)
  bias_gelu,      ///< aux = s + bias [m], d = gelu(s + bias)
  gelu_gradient,  ///< d = s * gelu'(aux)
  sums_of_b,      ///< d = s; also b_sums [n]: the sums of the columns of b as the product reads it, over k
};

/// A way to compute a product.
struct ProductForm {
  ProductTypes types;
  Epilogue epilogue = Epilogue::none;
  DType bias = DType::f32;  ///< its type, of bias and bias_gelu
  bool wide = false;        ///< the result is fp32, of a tensor that is not: a kernel of ours goes on from there
};

/// What factors and result of a product point to, and what its form has besides; null, what it has not.
struct ProductOperands {
  const void *a = nullptr, *b = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
  float* b_sums = nullptr;
  void* written_aux = nullptr;  ///< of gelu and bias_gelu
  const void* aux = nullptr;    ///< of gelu_gradient
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

/// Elements from one column of aux to the next; its type is d's.
constexpr std::int64_t aux_stride(const ColumnProduct& product) {
  return product.m();
}
/// cuBLASLt takes no other stride of it.
constexpr bool aux_fits(const ColumnProduct& product) {
  return aux_stride(product) % 8 == 0;
}

/// Of a plan's name, behind the algorithm: ", gelu with its input kept". No two forms of one product have the same.
[[nodiscard]] std::string suffix_of(const ProductForm& form);

}  // namespace lockstep::device
