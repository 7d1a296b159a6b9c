#include <cmath>
#include <functional>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

/// What an element adds to the value and the count.
using Scored = std::function<std::pair<double, double>(double x, double t)>;

ReferenceResult element_metric_reference(const ReferenceCall& call, const Scored& scored) {
  const DoubleTensor &x = call.inputs[0], &target = call.inputs[1];
  const std::size_t batch = x.shape[0];
  DoubleTensor value{{x.shape[0]}, std::vector<double>(batch)}, count = value;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const auto [of_value, of_count] = scored(x.values[i], target.values[i]);
    value.values[i / (x.values.size() / batch)] += of_value;
    count.values[i / (x.values.size() / batch)] += of_count;
  }
  return {{value, count}, {}};
}

/// Logits on either side, some of them 0, and targets that are 0, 1 or between, some of them 0.5.
void fill_answers(int index, Tensor& tensor) {
  int n = 0;
  for (auto& value : tensor.as<float>()) value = (n++ * 7 % (index == 0 ? 11 : 5)) / 4.0F - 1.25F;
  if (index == 1) {
    for (auto& value : tensor.as<float>()) value += 1.25F;
  }
}

std::vector<TensorSpec> answers(Shape prediction, Shape target, DType of_target = DType::f32) {
  return {{DType::f32, std::move(prediction)}, {of_target, std::move(target)}};
}

std::vector<OpCase> element_metric_cases(double tolerance) {
  return {
      {.name = "odd", .attributes = {}, .inputs = answers({3, 37}, {3, 37}), .tolerance = tolerance},
      {.name = "answers",
       .attributes = {},
       .inputs = answers({5, 23}, {5, 23}),
       .tolerance = tolerance,
       .fill = fill_answers},
      {.name = "column", .attributes = {}, .inputs = answers({5, 1}, {5}), .tolerance = tolerance},
      {.name = "empty", .attributes = {}, .inputs = answers({0, 7}, {0, 7}), .tolerance = tolerance},
      {.name = "speed", .attributes = {}, .inputs = answers({128, 100}, {128, 100}), .benchmark = true},
  };
}

OpCases error_cases(const std::string& op, const Scored& scored) {
  return {op, [scored](const ReferenceCall& call) { return element_metric_reference(call, scored); },
          element_metric_cases(1e-5)};
}

/// `scored` of what is said and what is.
OpCases yes_or_no_cases(const std::string& op, const std::function<std::pair<double, double>(bool, bool)>& scored) {
  auto cases = element_metric_cases(0);
  cases.push_back({.name = "labels",
                   .attributes = {},
                   .inputs = answers({9, 3}, {9, 3}, DType::i32),
                   .integer_bound = 2,
                   .tolerance = 0});
  cases.push_back({.name = "label_column",
                   .attributes = {},
                   .inputs = answers({9, 1}, {9}, DType::i32),
                   .integer_bound = 2,
                   .tolerance = 0});
  return {op,
          [scored](const ReferenceCall& call) {
            return element_metric_reference(call, [&](double x, double t) { return scored(x > 0, t > 0.5); });
          },
          cases};
}

}  // namespace

OpCases make_mae_cases() {
  return error_cases("mae", [](double x, double t) { return std::pair(std::fabs(x - t), 1.0); });
}

OpCases make_rmse_cases() {
  return error_cases("rmse", [](double x, double t) { return std::pair((x - t) * (x - t), 1.0); });
}

OpCases make_binary_accuracy_cases() {
  return yes_or_no_cases("binary_accuracy", [](bool said, bool is) { return std::pair(said == is ? 1.0 : 0.0, 1.0); });
}

OpCases make_precision_cases() {
  return yes_or_no_cases("precision",
                         [](bool said, bool is) { return std::pair(said && is ? 1.0 : 0.0, said ? 1.0 : 0.0); });
}

OpCases make_recall_cases() {
  return yes_or_no_cases("recall",
                         [](bool said, bool is) { return std::pair(said && is ? 1.0 : 0.0, is ? 1.0 : 0.0); });
}

OpCases make_iou_cases() {
  return yes_or_no_cases("iou",
                         [](bool said, bool is) { return std::pair(said && is ? 1.0 : 0.0, said || is ? 1.0 : 0.0); });
}

OpCases make_f1_cases() {
  return yes_or_no_cases("f1", [](bool said, bool is) {
    const double right = said && is ? 1 : 0, wrong = said != is ? 1 : 0;
    return std::pair(2 * right, 2 * right + wrong);
  });
}

}  // namespace lockstep::ops
