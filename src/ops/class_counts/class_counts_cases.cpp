// The naive reference: count a sample's rows, class by class.
#include <algorithm>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

std::size_t first_best(const double* scores, std::size_t classes) {
  return std::max_element(scores, scores + classes) - scores;
}

ReferenceResult class_counts_reference(const ReferenceCall& call) {
  const DoubleTensor &x = call.inputs[0], &target = call.inputs[1];
  const std::size_t batch = x.shape[0], classes = x.shape.back();
  const std::size_t per_sample = batch == 0 ? 0 : x.values.size() / batch / classes;
  const bool ignores = call.attributes.has("ignored_index");
  DoubleTensor counts{{x.shape[0], 3 * x.shape.back()}, std::vector<double>(batch * 3 * classes)};
  DoubleTensor counted{{x.shape[0]}, std::vector<double>(batch)};
  for (std::size_t row = 0; row < batch * per_sample; ++row) {
    const bool soft = target.shape == x.shape;
    const double label = soft ? 0 : target.values[row];
    if (!soft && ignores && label == call.attributes.integer("ignored_index")) continue;
    const std::size_t said = first_best(x.values.data() + row * classes, classes);
    const std::size_t is =
        soft ? first_best(target.values.data() + row * classes, classes) : static_cast<std::size_t>(label);
    double* const of_sample = counts.values.data() + row / per_sample * 3 * classes;
    of_sample[is] += said == is ? 1 : 0;
    of_sample[classes + said] += 1;
    of_sample[2 * classes + is] += 1;
    counted.values[row / per_sample] += 1;
  }
  return {{counts, counted}, {}};
}

OpCase of_labels(const std::string& name, Shape scores, std::int64_t bound, const Attributes& attributes = {}) {
  const Shape labels(scores.begin(), scores.end() - 1);
  return {.name = name,
          .attributes = attributes,
          .inputs = {{DType::f32, std::move(scores)}, {DType::i32, labels}},
          .integer_bound = bound,
          .tolerance = 0};
}

OpCases class_counts_cases(const std::string& op) {
  OpCase ties = of_labels("ties", {40, 8}, 8);
  ties.fill = [](int index, Tensor& tensor) {
    int n = 0;
    if (index != 0) return;
    for (auto& value : tensor.as<float>()) value = (n += 5) % 3;
  };
  OpCase speed = of_labels("speed", {128, 10}, 10);
  speed.benchmark = true;
  return {op,
          class_counts_reference,
          {of_labels("odd", {33, 10}, 10),
           of_labels("pixels", {3, 5, 7, 4}, 4),
           // Some of a group's threads read eight of a sample's rows at once, the others lack one for that.
           of_labels("many_rows", {2, 120, 3}, 3),
           // One of the threads has just the four rounds that a loop does at once.
           of_labels("four_rounds", {2, 56, 3}, 3),
           of_labels("ignored", {3, 9, 5}, 5, Attributes({{"ignored_index", std::int64_t{2}}})),
           {.name = "soft", .attributes = {}, .inputs = several(2, {9, 7}), .tolerance = 0},
           of_labels("empty", {0, 7}, 7),
           ties,
           speed}};
}

}  // namespace

OpCases make_macro_precision_cases() {
  return class_counts_cases("macro_precision");
}

OpCases make_macro_recall_cases() {
  return class_counts_cases("macro_recall");
}

OpCases make_macro_f1_cases() {
  return class_counts_cases("macro_f1");
}

OpCases make_mean_iou_cases() {
  return class_counts_cases("mean_iou");
}

}  // namespace lockstep::ops
