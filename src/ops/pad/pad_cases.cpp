#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

/// Where a place outside of n pixels is mirrored to.
std::int64_t mirrored(std::int64_t place, std::int64_t n) {
  if (place < 0) place = -place;
  return place < n ? place : 2 * (n - 1) - place;
}

ReferenceResult pad_reference(const ReferenceCall& call) {
  const DoubleTensor& x = call.inputs[0];
  auto sides = call.attributes.integers("sides");
  const std::int64_t top = sides[0], bottom = sides.size() == 4 ? sides[1] : top;
  const std::int64_t left = sides.size() == 4 ? sides[2] : sides.back(), right = sides.back();
  const bool reflect = call.attributes.text("mode") == "reflect";
  const std::int64_t height = x.shape[1], width = x.shape[2], channels = x.shape[3];
  DoubleTensor y{{x.shape[0], top + height + bottom, left + width + right, channels}, {}};
  for (std::int64_t n = 0; n < x.shape[0]; ++n) {
    for (std::int64_t r = -top; r < height + bottom; ++r) {
      for (std::int64_t c = -left; c < width + right; ++c) {
        const bool inside = r >= 0 && r < height && c >= 0 && c < width;
        const std::int64_t row = mirrored(r, height), column = mirrored(c, width);
        for (std::int64_t k = 0; k < channels; ++k) {
          y.values.push_back(inside || reflect ? x.values[((n * height + row) * width + column) * channels + k] : 0.0);
        }
      }
    }
  }
  return {{y}, {}};
}

}  // namespace

OpCases make_pad_cases() {
  const auto of = [](const std::string& name, std::vector<std::int64_t> sides, const std::string& mode, Shape shape) {
    return OpCase{.name = name,
                  .attributes = Attributes({{"sides", std::move(sides)}, {"mode", mode}}),
                  .inputs = {{DType::f32, std::move(shape)}}};
  };
  std::vector<OpCase> cases = {of("zero", {2}, "zero", {2, 3, 5, 3}),
                               of("zero_four_sides", {0, 1, 2, 3}, "zero", {2, 3, 4, 2}),
                               of("zero_empty", {1, 2}, "zero", {0, 3, 3, 2}),
                               of("reflect", {2}, "reflect", {2, 3, 5, 3}),
                               of("reflect_four_sides", {2, 0, 1, 3}, "reflect", {1, 5, 4, 2}),
                               of("reflect_one_row", {0, 2}, "reflect", {2, 1, 3, 2}),
                               of("speed", {1}, "zero", {16, 32, 32, 16})};
  cases.back().benchmark = true;
  return {"pad", pad_reference, cases};
}

}  // namespace lockstep::ops
