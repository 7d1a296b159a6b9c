#include <algorithm>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

/// How many positions of a sample count.
std::int64_t count_of(const ReferenceCall& call, std::int64_t sample, std::int64_t all) {
  if (call.inputs.size() < 2) return all;
  return call.inputs[1].values[sample];
}

ReferenceResult global_pool_reference(const ReferenceCall& call) {
  const DoubleTensor& x = call.inputs[0];
  const bool maximum = call.attributes.text("kind") == "max";
  const std::int64_t batch = x.shape.front(), channels = x.shape.back();
  const std::int64_t pixels = x.shape[1] * (x.shape.size() == 4 ? x.shape[2] : 1);
  DoubleTensor y{{batch, channels}, {}};
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto at = [&](std::int64_t p) { return x.values[(n * pixels + p) * channels + c]; };
      double value = at(0);
      const std::int64_t count = count_of(call, n, pixels);
      for (std::int64_t p = 1; p < count; ++p) value = maximum ? std::max(value, at(p)) : value + at(p);
      y.values.push_back(maximum ? value : value / count);
    }
  }
  return {{y}, {}};
}

ReferenceResult over_axis_reference(const ReferenceCall& call, bool maximum) {
  const DoubleTensor& x = call.inputs[0];
  const std::int64_t rank = x.shape.size(), given = call.attributes.integer("axis");
  const std::size_t axis = given < 0 ? given + rank : given;
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= x.shape[i];
  for (std::size_t i = axis + 1; i < x.shape.size(); ++i) inner *= x.shape[i];
  DoubleTensor y{x.shape, {}};
  y.shape.erase(y.shape.begin() + axis);
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      std::vector<double> line;
      for (std::int64_t k = 0; k < count_of(call, o, x.shape[axis]); ++k) {
        line.push_back(x.values[(o * x.shape[axis] + k) * inner + i]);
      }
      double sum = 0;
      for (const double value : line) sum += value;
      y.values.push_back(maximum ? *std::max_element(line.begin(), line.end()) : sum / line.size());
    }
  }
  return {{y}, {}};
}

OpCases over_axis_cases(const std::string& op, bool maximum) {
  const auto of = [](const std::string& name, std::int64_t axis, Shape shape) {
    return OpCase{.name = name, .attributes = Attributes({{"axis", axis}}), .inputs = {{DType::f32, std::move(shape)}}};
  };
  std::vector<OpCase> cases = {of("last", -1, {3, 5, 7}),     of("first", 1, {2, 9, 3, 4}),
                               of("middle", 2, {2, 3, 5, 4}), of("of_features", 1, {5, 6}),
                               of("empty", 1, {0, 4, 3}),     of("inference", 1, {2, 4, 3}),
                               of("speed", 1, {64, 64, 128})};
  cases[5].mode = Mode::inference;
  cases.back().benchmark = true;
  const Attributes first({{"axis", std::int64_t{1}}});
  cases.push_back(with_lengths("lengths", first, {{DType::f32, {4, 7, 5}}}, {7, 1, 3, 6}));
  cases.push_back(with_lengths("lengths_of_numbers", first, {{DType::f32, {3, 6}}}, {2, 6, 1}));
  cases.push_back(with_lengths("lengths_inference", first, {{DType::f32, {3, 4, 2, 3}}}, {2, 4, 1}));
  cases.back().mode = Mode::inference;
  cases.push_back(with_lengths("lengths_empty", first, {{DType::f32, {0, 4, 3}}}, {}));
  return {op, [maximum](const ReferenceCall& call) { return over_axis_reference(call, maximum); }, cases};
}

}  // namespace

OpCases make_mean_cases() {
  return over_axis_cases("mean", false);
}

OpCases make_max_cases() {
  return over_axis_cases("max", true);
}

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
              with_lengths("lengths", {}, {{DType::f32, {4, 7, 18}}}, {7, 1, 3, 6}),
              with_lengths("lengths_max", maximum, {{DType::f32, {3, 7, 5}}}, {6, 2, 1}),
              {.name = "speed", .inputs = {{DType::f32, {16, 8, 8, 64}}}, .benchmark = true},
          }};
}

}  // namespace lockstep::ops
