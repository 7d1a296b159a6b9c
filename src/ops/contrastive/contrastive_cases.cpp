#include <cmath>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult contrastive_reference(const ReferenceCall& call) {
  const DoubleTensor &x = call.inputs[0], &labels = call.inputs[1];
  const std::size_t b = x.shape[0], d = static_cast<std::size_t>(x.shape[1]) / 2;
  const double temperature = call.attributes.number("temperature");
  const auto vector = [&](std::size_t sample, std::size_t side) {
    std::vector<double> of(d);
    double squares = 0;
    for (std::size_t k = 0; k < d; ++k) squares += std::pow(of[k] = x.values[(2 * sample + side) * d + k], 2);
    for (double& value : of) value /= std::sqrt(squares + 1e-12);
    return of;
  };
  const auto similarity = [&](std::size_t i, std::size_t j) {
    const auto left = vector(i, 0), right = vector(j, 1);
    double sum = 0;
    for (std::size_t k = 0; k < d; ++k) sum += left[k] * right[k];
    return sum / temperature;
  };
  DoubleTensor loss{{x.shape[0]}, std::vector<double>(b)}, count{{x.shape[0]}, std::vector<double>(b, 1)};
  for (std::size_t i = 0; i < b; ++i) {
    double row = 0, column = 0;
    for (std::size_t j = 0; j < b; ++j) {
      if (j != i && labels.values[i] == labels.values[j]) continue;
      row += std::exp(similarity(i, j));
      column += std::exp(similarity(j, i));
    }
    loss.values[i] = (std::log(row) + std::log(column)) / 2 - similarity(i, i);
  }
  return {{loss, count}, {}};
}

OpCase contrastive_case(const std::string& name, std::int64_t samples, std::int64_t size, std::int64_t labels,
                        double temperature = 0.5) {
  return {.name = name,
          .attributes = Attributes({{"temperature", temperature}}),
          .inputs = {{DType::f32, {samples, 2 * size}}, {DType::i32, {samples}}},
          .integer_bound = labels};
}

}  // namespace

OpCases make_contrastive_cases() {
  std::vector<OpCase> cases = {contrastive_case("odd", 7, 5, 4),         contrastive_case("long", 3, 37, 100),
                               contrastive_case("many", 19, 3, 6),       contrastive_case("one", 1, 4, 2),
                               contrastive_case("one_label", 4, 3, 1),   contrastive_case("empty", 0, 3, 2),
                               contrastive_case("sharp", 6, 9, 50, 0.1), contrastive_case("speed", 64, 128, 1000)};
  cases.back().benchmark = true;
  return {"contrastive", contrastive_reference, cases};
}

}  // namespace lockstep::ops
