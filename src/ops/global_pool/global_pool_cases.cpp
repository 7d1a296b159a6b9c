#include <algorithm>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult global_pool_reference(const ReferenceCall& call) {
  const DoubleTensor& x = call.inputs[0];
  const bool maximum = call.attributes.text("kind") == "max";
  const std::int64_t batch = x.shape.front(), channels = x.shape.back();
  const std::int64_t pixels = x.shape[1] * (x.shape.size() == 4 ? x.shape[2] : 1);
  DoubleTensor y{{batch, channels}, {}};
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto at = [&](std::int64_t p) {
        return x.values[static_cast<std::size_t>((n * pixels + p) * channels + c)];
      };
      double value = at(0);
      for (std::int64_t p = 1; p < pixels; ++p) value = maximum ? std::max(value, at(p)) : value + at(p);
      y.values.push_back(maximum ? value : value / static_cast<double>(pixels));
    }
  }
  return {{y}, {}};
}

}  // namespace

OpCases make_global_pool_cases() {
  const Attributes maximum({{"kind", std::string("max")}});
  return {"global_pool",
          global_pool_reference,
          {
              {.name = "average", .inputs = {{DType::f32, {3, 5, 7, 3}}}},
              {.name = "average_64", .inputs = {{DType::f32, {2, 8, 8, 64}}}},
              {.name = "sequence", .inputs = {{DType::f32, {2, 9, 17}}}},
              {.name = "max", .attributes = maximum, .inputs = {{DType::f32, {3, 4, 3, 5}}}},
              {.name = "inference",
               .attributes = maximum,
               .inputs = {{DType::f32, {2, 4, 3, 18}}},
               .mode = Mode::inference},
              {.name = "speed", .inputs = {{DType::f32, {16, 8, 8, 64}}}, .benchmark = true},
          }};
}

}  // namespace lockstep::ops
