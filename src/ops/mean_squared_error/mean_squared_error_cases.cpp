#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult mean_squared_error_reference(const ReferenceCall& call) {
  const DoubleTensor &x = call.inputs[0], &target = call.inputs[1];
  const auto batch = static_cast<std::size_t>(x.shape[0]);
  DoubleTensor loss{{x.shape[0]}, std::vector<double>(batch)}, count = loss;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double difference = x.values[i] - target.values[i];
    loss.values[i / (x.values.size() / batch)] += difference * difference;
    count.values[i / (x.values.size() / batch)] += 1;
  }
  return {{loss, count}, {}};
}

std::vector<TensorSpec> pair(Shape prediction, Shape target) {
  return {{DType::f32, std::move(prediction)}, {DType::f32, std::move(target)}};
}

}  // namespace

OpCases make_mean_squared_error_cases() {
  return {"mean_squared_error",
          mean_squared_error_reference,
          {
              {.name = "odd", .attributes = {}, .inputs = pair({3, 37}, {3, 37})},
              {.name = "image", .attributes = {}, .inputs = pair({2, 3, 4, 3}, {2, 3, 4, 3})},
              {.name = "column", .attributes = {}, .inputs = pair({5, 1}, {5})},
              {.name = "empty", .attributes = {}, .inputs = pair({0, 7}, {0, 7})},
              {.name = "speed", .attributes = {}, .inputs = pair({128, 1000}, {128, 1000}), .benchmark = true},
          }};
}

}  // namespace lockstep::ops
