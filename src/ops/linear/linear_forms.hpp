// In which forms a library is asked for linear's products, the best first; gelu is that of linear_gelu and gelu_linear.
#pragma once

#include <vector>

#include "device/gpu/product_form.hpp"
#include "ops/linear/linear_sizes.hpp"

namespace lockstep::ops {

/// Where gelu stands.
enum class GeluAt : std::uint8_t { none, output, input };

using ProductForms = std::vector<device::ProductForm>;

/// Whether a library's gelu will do: it does not say how exact that is, and fp32 is promised to be.
inline bool takes_librarys_gelu(device::ProductTypes types) {
  return is_low_precision(types.factors) || types.tf32;
}

/// A bias is added in fp32 and the output rounded once, behind it. Where the library has that for a low-precision bias
/// only, it gets a rounded one: the last form, which keeps sums in fp32 for a kernel of ours to round or to take gelu
/// of, moves three to five times the memory.
inline ProductForms output_forms(const LinearSizes& sizes, device::ProductTypes types, bool bias, GeluAt gelu) {
  using device::Epilogue;
  device::ProductTypes wide = types;
  wide.result = DType::f32;
  const Epilogue plain = bias ? Epilogue::bias : Epilogue::none;
  const bool with_gelu = gelu == GeluAt::output && takes_librarys_gelu(types);
  const Epilogue whole = !with_gelu ? plain : bias ? Epilogue::bias_gelu : Epilogue::gelu;
  ProductForms forms;
  if (!device::has_aux(whole) || device::aux_fits(output_product(sizes))) {
    forms.push_back({types, whole});
    if (bias && is_low_precision(types.result)) forms.push_back({types, whole, types.result});
  }
  const bool rounded = wide.result != types.result;
  if (whole != plain || rounded) forms.push_back({wide, plain, DType::f32, rounded});
  return forms;
}

/// As output_forms().
inline ProductForms input_gradient_forms(const LinearSizes& sizes, device::ProductTypes types, GeluAt gelu) {
  if (gelu != GeluAt::input) return {{types}};
  ProductForms forms;
  if (takes_librarys_gelu(types) && device::aux_fits(input_gradient_product(sizes))) {
    forms.push_back({types, device::Epilogue::gelu_gradient});
  }
  const bool rounded = is_low_precision(types.result);
  types.result = DType::f32;
  forms.push_back({types, device::Epilogue::none, DType::f32, rounded});
  return forms;
}

/// The columns of dy, which is the product's b, are what the bias was added to.
inline ProductForms weight_gradient_forms(device::ProductTypes types, bool bias) {
  if (!bias) return {{types}};
  return {{types, device::Epilogue::sums_of_b}, {types}};
}

}  // namespace lockstep::ops
