// The naive reference: sort the classes of each row.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult class_metric_reference(const ReferenceCall& call, std::size_t best) {
  const DoubleTensor &x = call.inputs[0], &target = call.inputs[1];
  const std::size_t batch = x.shape[0], classes = x.shape.back();
  const std::size_t per_sample = batch == 0 ? 0 : x.values.size() / batch / classes;
  DoubleTensor right{{x.shape[0]}, std::vector<double>(batch)}, count = right;
  for (std::size_t row = 0; row < batch * per_sample; ++row) {
    const double* scores = x.values.data() + row * classes;
    std::vector<std::size_t> order(classes);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return scores[a] > scores[b]; });
    std::size_t label = target.values[std::min(row, target.values.size() - 1)];
    if (target.shape == x.shape) {
      const auto first = target.values.begin() + (row * classes);
      label = std::max_element(first, first + classes) - first;
    }
    const std::size_t place = std::find(order.begin(), order.end(), label) - order.begin();
    right.values[row / per_sample] += place < best ? 1 : 0;
    count.values[row / per_sample] += 1;
  }
  return {{right, count}, {}};
}

/// Small integers, so that equal scores are frequent.
void fill_with_ties(int index, Tensor& tensor) {
  std::uint64_t n = index;
  if (tensor.dtype() == DType::f32) {
    for (auto& value : tensor.as<float>()) value = (n = n * 1103515245 + 12345) >> 16U & 3U;
  } else {
    for (auto& value : tensor.as<std::int32_t>()) value = (n = n * 1103515245 + 12345) >> 16U & 7U;
  }
}

std::vector<OpCase> class_metric_cases() {
  return {
      {.name = "odd",
       .attributes = {},
       .inputs = {{DType::f32, {33, 10}}, {DType::i32, {33}}},
       .integer_bound = 10,
       .tolerance = 0},
      {.name = "ties",
       .attributes = {},
       .inputs = {{DType::f32, {40, 8}}, {DType::i32, {40}}},
       .tolerance = 0,
       .fill = fill_with_ties},
      {.name = "sequence",
       .attributes = {},
       .inputs = {{DType::f32, {3, 5, 9}}, {DType::i32, {3, 5}}},
       .integer_bound = 9,
       .tolerance = 0},
      {.name = "soft", .attributes = {}, .inputs = {{DType::f32, {9, 7}}, {DType::f32, {9, 7}}}, .tolerance = 0},
      {.name = "few_classes",
       .attributes = {},
       .inputs = {{DType::f32, {4, 3}}, {DType::i32, {4}}},
       .integer_bound = 3,
       .tolerance = 0},
      {.name = "empty",
       .attributes = {},
       .inputs = {{DType::f32, {0, 7}}, {DType::i32, {0}}},
       .integer_bound = 7,
       .tolerance = 0},
      {.name = "speed",
       .attributes = {},
       .inputs = {{DType::f32, {128, 10}}, {DType::i32, {128}}},
       .integer_bound = 10,
       .benchmark = true},
  };
}

}  // namespace

OpCases make_accuracy_cases() {
  return {"accuracy", [](const ReferenceCall& call) { return class_metric_reference(call, 1); }, class_metric_cases()};
}

OpCases make_top_k_cases() {
  std::vector<OpCase> cases;
  for (const std::int64_t k : {5, 2, 3}) {
    for (OpCase& of_k : class_metric_cases()) {
      if (of_k.benchmark && k != 5) continue;
      if (k != 5) of_k.name += fmt::format("_{}", k);
      of_k.attributes = Attributes({{"k", k}});
      cases.push_back(std::move(of_k));
    }
  }
  return {"top_k", [](const ReferenceCall& call) { return class_metric_reference(call, call.attributes.integer("k")); },
          std::move(cases)};
}

}  // namespace lockstep::ops
