#include "core/untrusted.hpp"

namespace lockstep {

bool nests_too_deep(std::string_view json) {
  constexpr int kDeepest = 200;  // what lockstep writes nests less than 20 deep
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_text = !in_text;
    } else if (!in_text && (c == '[' || c == '{')) {
      if (++depth > kDeepest) return true;
    } else if (!in_text && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return false;
}

bool is_sound(const Feature& feature) {
  const Shape& shape = feature.spec.shape;
  const auto is = [&](DType dtype, std::size_t rank) { return feature.spec.dtype == dtype && shape.size() == rank; };
  if (feature.kind == Feature::Kind::image) return is(DType::u8, 3) && shape[2] >= 1;
  if (feature.kind == Feature::Kind::mask) return is(DType::u8, 3) && shape[2] == 1 && !feature.classes.empty();
  if (feature.kind == Feature::Kind::label) return is(DType::i32, 0);
  if (feature.kind == Feature::Kind::columns) {
    const bool window = is(DType::f64, 2) && shape[0] >= 1;
    return (is(DType::f64, 1) || is(DType::f32, 1) || window) && shape.back() >= 1;
  }
  if (feature.kind == Feature::Kind::weight) return is(DType::f32, 0);
  return feature.kind != Feature::Kind::tokens || is(DType::i32, 1);
}

}  // namespace lockstep
