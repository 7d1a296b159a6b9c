#include <cmath>
#include <functional>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

template <class Function>
ReferenceResult element_loss_reference(const ReferenceCall& call, const Function& function) {
  const DoubleTensor &x = call.inputs[0], &target = call.inputs[1];
  const std::size_t batch = x.shape[0];
  DoubleTensor loss{{x.shape[0]}, std::vector<double>(batch)}, count = loss;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    loss.values[i / (x.values.size() / batch)] += function(x.values[i], target.values[i]);
    count.values[i / (x.values.size() / batch)] += 1;
  }
  return {{loss, count}, {}};
}

std::vector<TensorSpec> pair(Shape prediction, Shape target, DType of_target = DType::f32) {
  return {{DType::f32, std::move(prediction)}, {of_target, std::move(target)}};
}

/// Targets from 0 to 1.
void fill_shares(int index, Tensor& tensor) {
  if (index == 0) return;
  for (auto& value : tensor.as<float>()) value = (value + 1) / 2;
}

std::vector<OpCase> element_loss_cases(const Attributes& attributes = {}, const std::string& prefix = "") {
  return {
      {.name = prefix + "odd", .attributes = attributes, .inputs = pair({3, 37}, {3, 37})},
      {.name = prefix + "a_lane_reads_seven",
       .attributes = attributes,
       .inputs = pair({2, 120}, {2, 120})},  // some read kAhead elements at once, others lack one for that
      {.name = prefix + "image", .attributes = attributes, .inputs = pair({2, 3, 4, 3}, {2, 3, 4, 3})},
      {.name = prefix + "column", .attributes = attributes, .inputs = pair({5, 1}, {5})},
      {.name = prefix + "empty", .attributes = attributes, .inputs = pair({0, 7}, {0, 7})},
      {.name = prefix + "speed", .attributes = attributes, .inputs = pair({128, 1000}, {128, 1000}), .benchmark = true},
  };
}

double binary_cross_entropy(double x, double t, const Attributes& settings) {
  const double smoothing = settings.number("label_smoothing"),
               focal = settings.has("focal") ? settings.number("focal") : 0;
  const double q = (1 - smoothing) * t + smoothing / 2;
  const auto term = [focal](double v) {
    const double minus_log_sigmoid = std::log1p(std::exp(-std::fabs(v))) + std::max(-v, 0.0);
    return std::pow(1 / (1 + std::exp(v)), focal) * minus_log_sigmoid;
  };
  return settings.number("positive_weight") * q * term(x) + (1 - q) * term(-x);
}

/// Logits so far out that exponentials of them are 0 or infinite.
void fill_far_logits(int index, Tensor& tensor) {
  float x = index == 0 ? -131.0F : 0.0F;
  for (auto& value : tensor.as<float>()) {
    value = x;
    x = index == 0 ? (x > 130 ? x - 261.0F : x + 7.3F) : (x >= 1 ? 0.0F : x + 0.25F);
  }
}

/// Logits on both sides and far out, and targets that are 0, 1 or between.
void fill_logits(int index, Tensor& tensor) {
  float x = index == 0 ? -41.0F : 0.0F;
  for (auto& value : tensor.as<float>()) {
    value = x;
    x = index == 0 ? (x > 40 ? x - 81.3F : x + 1.7F) : (x >= 1 ? 0.0F : x + 0.25F);
  }
}

}  // namespace

OpCases make_mean_squared_error_cases() {
  return {"mean_squared_error",
          [](const ReferenceCall& call) {
            return element_loss_reference(call, [](double x, double t) { return (x - t) * (x - t); });
          },
          element_loss_cases()};
}

OpCases make_mean_absolute_error_cases() {
  return {"mean_absolute_error",
          [](const ReferenceCall& call) {
            return element_loss_reference(call, [](double x, double t) { return std::fabs(x - t); });
          },
          element_loss_cases()};
}

OpCases make_huber_cases() {
  auto cases = element_loss_cases();
  for (auto& own : element_loss_cases(Attributes({{"delta", 0.3}}), "short_")) {
    if (!own.benchmark) cases.push_back(std::move(own));
  }
  return {"huber",
          [](const ReferenceCall& call) {
            const double delta = static_cast<float>(call.attributes.number("delta"));
            return element_loss_reference(call, [delta](double x, double t) {
              const double d = std::fabs(x - t);
              return d < delta ? 0.5 * d * d : delta * (d - 0.5 * delta);
            });
          },
          cases};
}

OpCases make_binary_cross_entropy_cases() {
  auto cases = element_loss_cases();
  for (OpCase& own : cases) own.fill = fill_shares;
  const auto labelled = [&](const std::string& name, Shape prediction, Shape target,
                            const Attributes& attributes = {}) {
    cases.push_back({.name = name,
                     .attributes = attributes,
                     .inputs = pair(std::move(prediction), std::move(target), DType::i32),
                     .integer_bound = 2});
  };
  labelled("labels", {7, 3}, {7, 3});
  labelled("label_column", {9, 1}, {9});
  labelled("no_labels", {0, 1}, {0});
  labelled("weighted_labels", {5, 19}, {5, 19}, Attributes({{"positive_weight", 2.5}}));
  cases.push_back({.name = "far", .attributes = {}, .inputs = pair({5, 29}, {5, 29}), .fill = fill_logits});
  cases.push_back({.name = "focal_far",
                   .attributes = Attributes({{"focal", 2.0}}),
                   .inputs = pair({5, 29}, {5, 29}),
                   .fill = fill_far_logits});
  labelled("focal_labels", {5, 19}, {5, 19}, Attributes({{"focal", 2.0}}));
  cases.push_back({.name = "focal_weighted_smooth",
                   .attributes = Attributes({{"focal", 0.5}, {"positive_weight", 0.4}, {"label_smoothing", 0.2}}),
                   .inputs = pair({5, 29}, {5, 29}),
                   .fill = fill_logits});
  cases.push_back({.name = "focal_speed",
                   .attributes = Attributes({{"focal", 2.0}}),
                   .inputs = pair({128, 1000}, {128, 1000}),
                   .benchmark = true,
                   .fill = fill_shares});
  cases.push_back({.name = "weighted_smooth",
                   .attributes = Attributes({{"positive_weight", 0.4}, {"label_smoothing", 0.2}}),
                   .inputs = pair({5, 29}, {5, 29}),
                   .fill = fill_logits});
  return {"binary_cross_entropy",
          [](const ReferenceCall& call) {
            return element_loss_reference(
                call, [&](double x, double t) { return binary_cross_entropy(x, t, call.attributes); });
          },
          cases};
}

}  // namespace lockstep::ops
