#include <cmath>
#include <complex>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

/// A pair is a complex number, which a power of e^(i angle) turns.
ReferenceResult rope_reference(const ReferenceCall& call) {
  const DoubleTensor& x = call.inputs[0];
  DoubleTensor y = x;
  const std::size_t positions = x.shape[1], width = x.shape[2];
  const std::size_t size = width / call.attributes.integer("heads");
  const double base = call.attributes.number("base");
  for (std::size_t at = 0; at < x.values.size(); at += size) {
    const double position = at / width % positions;
    for (std::size_t i = 0; i < size / 2; ++i) {
      const double angle = position / std::pow(base, 2.0 * static_cast<double>(i) / size);
      const auto turned = std::complex(x.values[at + i], x.values[at + i + size / 2]) * std::polar(1.0, angle);
      y.values[at + i] = turned.real();
      y.values[at + i + size / 2] = turned.imag();
    }
  }
  return {{y}, {}};
}

Attributes rope_of(std::int64_t heads, double base = 10000) {
  return Attributes({{"heads", heads}, {"base", base}});
}

}  // namespace

OpCases make_rope_cases() {
  return {"rope",
          rope_reference,
          {
              {.name = "one_head", .attributes = rope_of(1), .inputs = {{DType::f32, {2, 5, 14}}}},
              {.name = "heads", .attributes = rope_of(3), .inputs = {{DType::f32, {2, 7, 24}}}},
              {.name = "other_base", .attributes = rope_of(2, 100), .inputs = {{DType::f32, {1, 9, 12}}}},
              {.name = "base_of_1", .attributes = rope_of(2, 1), .inputs = {{DType::f32, {2, 9, 8}}}},
              {.name = "far", .attributes = rope_of(1), .inputs = {{DType::f32, {1, 5000, 4}}}},
              {.name = "largest_head", .attributes = rope_of(1), .inputs = {{DType::f32, {1, 3, 512}}}},
              {.name = "empty", .attributes = rope_of(2), .inputs = {{DType::f32, {0, 5, 8}}}},
              {.name = "speed", .attributes = rope_of(4), .inputs = {{DType::f32, {1, 64, 128}}}, .benchmark = true},
          }};
}

}  // namespace lockstep::ops
