#include "device/gpu/product_form.hpp"

namespace lockstep::device {

std::string suffix_of(const ProductForm& form) {
  std::string text;
  if (writes_aux(form.epilogue)) text = ", gelu with its input kept";
  if (form.epilogue == Epilogue::gelu_gradient) text = ", gelu's gradient";
  if (form.epilogue == Epilogue::sums_of_b) text = ", bias's gradient";
  if (adds_bias(form.epilogue) && form.bias != DType::f32) text += ", bias in " + std::string(name_of(form.bias));
  if (form.wide) text += ", result in fp32";
  return text;
}

}  // namespace lockstep::device
