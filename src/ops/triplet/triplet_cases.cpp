#include <cmath>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult triplet_reference(const ReferenceCall& call) {
  const DoubleTensor& x = call.inputs[0];
  const std::size_t b = x.shape[0], d = static_cast<std::size_t>(x.shape[1]) / 3;
  DoubleTensor loss{{x.shape[0]}, std::vector<double>(b)}, count{{x.shape[0]}, std::vector<double>(b, 1)};
  for (std::size_t i = 0; i < b; ++i) {
    const auto distance = [&](std::size_t other) {
      double squares = 0;
      for (std::size_t k = 0; k < d; ++k) {
        squares += std::pow(x.values[3 * i * d + k] - x.values[(3 * i + other) * d + k], 2);
      }
      return std::sqrt(squares + 1e-12);
    };
    loss.values[i] = std::max(0.0, distance(1) - distance(2) + call.attributes.number("margin"));
  }
  return {{loss, count}, {}};
}

OpCase triplet_case(const std::string& name, std::int64_t samples, std::int64_t size, double margin = 1) {
  return {.name = name,
          .attributes = Attributes({{"margin", margin}}),
          .inputs = {{DType::f32, {samples, 3 * size}}, {DType::i32, {samples}}},
          .integer_bound = 10};
}

}  // namespace

OpCases make_triplet_cases() {
  std::vector<OpCase> cases = {
      triplet_case("odd", 7, 5),   triplet_case("long", 3, 37), triplet_case("far_apart", 9, 6, 0.05),
      triplet_case("empty", 0, 4), triplet_case("one", 1, 1),   triplet_case("speed", 256, 128)};
  cases.back().benchmark = true;
  return {"triplet", triplet_reference, cases};
}

}  // namespace lockstep::ops
