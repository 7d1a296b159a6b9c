#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

/// Splits each input element's index and reassembles it in the new order.
ReferenceResult transpose_reference(const ReferenceCall& call) {
  const DoubleTensor& x = call.inputs[0];
  std::vector<std::size_t> order = {0};
  for (const auto dimension : call.attributes.integers("order")) order.push_back(dimension);
  DoubleTensor y{{}, std::vector<double>(x.values.size())};
  for (const auto dimension : order) y.shape.push_back(x.shape[dimension]);
  for (std::size_t e = 0; e < x.values.size(); ++e) {
    std::vector<std::size_t> index(x.shape.size());
    std::size_t rest = e, to = 0;
    for (std::size_t d = x.shape.size(); d-- > 0;) {
      index[d] = rest % x.shape[d];
      rest /= x.shape[d];
    }
    for (const auto dimension : order) to = to * x.shape[dimension] + index[dimension];
    y.values[to] = x.values[e];
  }
  return {{y}, {}};
}

Attributes order(std::vector<std::int64_t> list) {
  return Attributes({{"order", std::move(list)}});
}

}  // namespace

OpCases make_transpose_cases() {
  return {"transpose",
          transpose_reference,
          {
              {.name = "matrix", .attributes = order({2, 1}), .inputs = {{DType::f32, {2, 3, 5}}}, .tolerance = 0},
              {.name = "cycle", .attributes = order({3, 1, 2}), .inputs = {{DType::f32, {2, 3, 5, 4}}}, .tolerance = 0},
              {.name = "identity", .attributes = order({1}), .inputs = {{DType::f32, {3, 4}}}, .tolerance = 0},
              {.name = "empty", .attributes = order({2, 1}), .inputs = {{DType::f32, {0, 3, 5}}}, .tolerance = 0},
              {.name = "speed", .attributes = order({2, 1}), .inputs = {{DType::f32, {1, 64, 512}}}, .benchmark = true},
          }};
}

}  // namespace lockstep::ops
