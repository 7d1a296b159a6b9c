#include <algorithm>
#include <cmath>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

double row_loss(const double* x, const std::vector<double>& q, double focal) {
  const double maximum = *std::max_element(x, x + q.size());
  double sum = 0, loss = 0;
  for (std::size_t k = 0; k < q.size(); ++k) sum += std::exp(x[k] - maximum);
  for (std::size_t k = 0; k < q.size(); ++k) {
    const double log_share = x[k] - maximum - std::log(sum);
    loss -= q[k] * std::pow(-std::expm1(log_share), focal) * log_share;
  }
  return loss;
}

ReferenceResult cross_entropy_reference(const ReferenceCall& call) {
  const DoubleTensor &x = call.inputs[0], &target = call.inputs[1];
  const std::size_t batch = x.shape[0], classes = x.shape.back();
  const std::size_t per_sample = batch == 0 ? 0 : x.values.size() / batch / classes;
  const double smoothing = call.attributes.number("label_smoothing");
  const double focal = call.attributes.has("focal") ? call.attributes.number("focal") : 0;
  const bool soft = target.shape == x.shape;
  DoubleTensor loss{{x.shape[0]}, std::vector<double>(batch)}, count = loss;
  for (std::size_t row = 0; row < batch * per_sample; ++row) {
    std::vector<double> q(classes, smoothing / classes);
    if (!soft && call.attributes.has("ignored_index") &&
        target.values[row] == call.attributes.integer("ignored_index")) {
      continue;
    }
    for (std::size_t k = 0; k < classes; ++k) {
      const double wanted = soft ? target.values[row * classes + k] : (target.values[row] == k ? 1 : 0);
      q[k] += (1 - smoothing) * wanted;
    }
    loss.values[row / per_sample] += row_loss(x.values.data() + row * classes, q, focal);
    count.values[row / per_sample] += 1;
  }
  return {{loss, count}, {}};
}

/// Scores around 1e4 that differ by a few units.
void large_scores(int index, Tensor& tensor) {
  if (index != 0) return;
  for (auto& value : tensor.as<float>()) value = 1e4F + 4 * value;
}

/// A target of probabilities, of which some are 0.
void fill_probabilities(int index, Tensor& tensor) {
  if (index != 1) return;
  int n = 0;
  for (auto& value : tensor.as<float>()) value = ((n += 3) % 5) / 10.0F;
}

ReferenceResult kl_divergence_reference(const ReferenceCall& call) {
  const DoubleTensor &x = call.inputs[0], &target = call.inputs[1];
  const std::size_t batch = x.shape[0], classes = x.shape.back();
  const std::size_t rows = x.values.size() / classes;
  DoubleTensor loss{{x.shape[0]}, std::vector<double>(batch)}, count = loss;
  for (std::size_t row = 0; row < rows; ++row) {
    const double* scores = x.values.data() + row * classes;
    double sum = 0;
    for (std::size_t k = 0; k < classes; ++k) sum += std::exp(scores[k]);
    for (std::size_t k = 0; k < classes; ++k) {
      const double q = target.values[row * classes + k];
      if (q > 0) loss.values[row / (rows / batch)] += q * (std::log(q) - (scores[k] - std::log(sum)));
    }
    count.values[row / (rows / batch)] += 1;
  }
  return {{loss, count}, {}};
}

/// The sum that is reported, before the exp.
ReferenceResult perplexity_reference(const ReferenceCall& call) {
  const DoubleTensor &x = call.inputs[0], &target = call.inputs[1];
  const std::size_t batch = x.shape[0], classes = x.shape.back();
  DoubleTensor value{{x.shape[0]}, std::vector<double>(batch)}, count = value;
  for (std::size_t row = 0; row < target.values.size(); ++row) {
    double sum = 0;
    for (std::size_t k = 0; k < classes; ++k) sum += std::exp(x.values[row * classes + k]);
    const double likelihood = std::exp(x.values[row * classes + static_cast<std::size_t>(target.values[row])]) / sum;
    value.values[row / (target.values.size() / batch)] -= std::log(likelihood);
    count.values[row / (target.values.size() / batch)] += 1;
  }
  return {{value, count}, {}};
}

}  // namespace

OpCases make_cross_entropy_cases() {
  const TensorSpec labels{DType::i32, {5}};
  const Attributes smooth({{"label_smoothing", 0.1}}), ignore({{"ignored_index", std::int64_t{2}}});
  return {
      "cross_entropy",
      cross_entropy_reference,
      {
          {.name = "odd", .attributes = {}, .inputs = {{DType::f32, {5, 7}}, labels}, .integer_bound = 7},
          {.name = "wide", .attributes = {}, .inputs = {{DType::f32, {5, 65}}, labels}, .integer_bound = 65},
          {.name = "smooth", .attributes = smooth, .inputs = {{DType::f32, {5, 19}}, labels}, .integer_bound = 19},
          {.name = "sequence_ignored",
           .attributes = ignore,
           .inputs = {{DType::f32, {2, 9, 3}}, {DType::i32, {2, 9}}},
           .integer_bound = 3},
          {.name = "long_sequence_ignored",
           .attributes = ignore,
           .inputs = {{DType::f32, {2, 67, 5}}, {DType::i32, {2, 67}}},
           .integer_bound = 5},
          {.name = "soft", .attributes = smooth, .inputs = {{DType::f32, {3, 6}}, {DType::f32, {3, 6}}}},
          {.name = "large_scores",
           .attributes = {},
           .inputs = {{DType::f32, {6, 37}}, {DType::i32, {6}}},
           .integer_bound = 37,
           .tolerance = 1e-6,
           .gradient_tolerance = 1e-5,
           .fill = large_scores},
          {.name = "large_scores_smooth",
           .attributes = smooth,
           .inputs = {{DType::f32, {6, 37}}, {DType::i32, {6}}},
           .integer_bound = 37,
           .tolerance = 1e-6,
           .gradient_tolerance = 1e-5,
           .fill = large_scores},
          {.name = "large_scores_soft",
           .attributes = smooth,
           .inputs = {{DType::f32, {3, 37}}, {DType::f32, {3, 37}}},
           .tolerance = 3e-6,
           .gradient_tolerance = 1e-5,
           .fill = large_scores},
          {.name = "focal",
           .attributes = Attributes({{"focal", 2.0}}),
           .inputs = {{DType::f32, {5, 19}}, labels},
           .integer_bound = 19},
          {.name = "focal_below_1_ignored_smooth",
           .attributes = Attributes({{"focal", 0.5}, {"label_smoothing", 0.1}, {"ignored_index", std::int64_t{2}}}),
           .inputs = {{DType::f32, {2, 9, 3}}, {DType::i32, {2, 9}}},
           .integer_bound = 3},
          {.name = "focal_soft",
           .attributes = Attributes({{"focal", 3.0}}),
           .inputs = {{DType::f32, {3, 4, 21}}, {DType::f32, {3, 4, 21}}},
           .fill = fill_probabilities},
          {.name = "focal_empty",
           .attributes = Attributes({{"focal", 2.0}}),
           .inputs = {{DType::f32, {0, 7}}, {DType::i32, {0}}},
           .integer_bound = 7},
          {.name = "blocks_of_classes",
           .attributes = {},
           .inputs = {{DType::f32, {5, 1100}}, labels},
           .integer_bound = 1100},
          {.name = "blocks_of_classes_smooth",
           .attributes = smooth,
           .inputs = {{DType::f32, {5, 513}}, labels},
           .integer_bound = 513},
          {.name = "blocks_of_classes_almost_whole",
           .attributes = {},
           .inputs = {{DType::f32, {3, 1019}}, {DType::i32, {3}}},
           .integer_bound = 1019},
          {.name = "blocks_of_classes_ignored",
           .attributes = ignore,
           .inputs = {{DType::f32, {2, 9, 1024}}, {DType::i32, {2, 9}}},
           .integer_bound = 3},
          {.name = "blocks_of_classes_soft",
           .attributes = {},
           .inputs = {{DType::f32, {3, 515}}, {DType::f32, {3, 515}}}},
          {.name = "empty", .attributes = {}, .inputs = {{DType::f32, {0, 7}}, {DType::i32, {0}}}, .integer_bound = 7},
          {.name = "focal_speed",
           .attributes = Attributes({{"focal", 2.0}}),
           .inputs = {{DType::f32, {128, 100}}, {DType::i32, {128}}},
           .integer_bound = 100,
           .benchmark = true},
          {.name = "speed_gpt",
           .attributes = {},
           .inputs = {{DType::f32, {1, 64, 65}}, {DType::i32, {1, 64}}},
           .integer_bound = 65,
           .benchmark = true},
          // 201 blocks of classes: so many that a GPU's lane reads its first ones ahead, and has a rest.
          {.name = "speed_vocabulary",
           .attributes = smooth,
           .inputs = {{DType::f32, {2, 102801}}, {DType::i32, {2}}},
           .integer_bound = 102801,
           .benchmark = true},
      }};
}

OpCases make_kl_divergence_cases() {
  const auto of = [](const std::string& name, const Shape& shape) {
    return OpCase{.name = name, .attributes = {}, .inputs = several(2, shape), .fill = fill_probabilities};
  };
  std::vector<OpCase> cases = {of("odd", {5, 19}), of("sequence", {2, 7, 5}), of("empty", {0, 7}),
                               of("speed", {128, 100})};
  cases.back().benchmark = true;
  return {"kl_divergence", kl_divergence_reference, cases};
}

OpCases make_perplexity_cases() {
  return {"perplexity",
          perplexity_reference,
          {
              {.name = "sequence",
               .attributes = {},
               .inputs = {{DType::f32, {2, 5, 9}}, {DType::i32, {2, 5}}},
               .integer_bound = 9},
              {.name = "empty",
               .attributes = {},
               .inputs = {{DType::f32, {0, 5, 9}}, {DType::i32, {0, 5}}},
               .integer_bound = 9},
          }};
}

}  // namespace lockstep::ops
