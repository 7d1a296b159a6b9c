// What a sample leaves, in double: the square in two parts is compared by its leading part, as the definition of it.
#include <bit>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult r2_reference(const ReferenceCall& call) {
  const DoubleTensor &x = call.inputs[0], &t = call.inputs[1];
  const std::size_t batch = x.shape[0], n = batch == 0 ? 0 : x.values.size() / batch;
  DoubleTensor values{{x.shape[0], 6}, {}}, count{{x.shape[0]}, std::vector<double>(batch, n)};
  for (std::size_t sample = 0; sample < batch; ++sample) {
    const double *from = x.values.data() + sample * n, *target = t.values.data() + sample * n;
    double sum = 0, residual = 0, spread = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sum += target[i];
      residual += (from[i] - target[i]) * (from[i] - target[i]);
    }
    for (std::size_t i = 0; i < n; ++i) {
      spread += (target[i] - sum / n) * (target[i] - sum / n);
    }
    // 12 bits of the sum, as a double has them.
    const double leading = std::bit_cast<double>(std::bit_cast<std::uint64_t>(sum) & ~((std::uint64_t{1} << 41U) - 1));
    for (const double value : {residual, sum, leading * leading, sum * sum - leading * leading, spread, 1.0}) {
      values.values.push_back(value);
    }
  }
  return {{values, count}, {}};
}

/// Targets of which a sum has few bits, so that rounding does not change which are the leading ones.
void fill_eighths(int index, Tensor& tensor) {
  int n = index;
  for (auto& value : tensor.as<float>()) value = ((n += 7) % 41) / 8.0F - 2.0F;
}

void fill_far_eighths(int index, Tensor& tensor) {
  fill_eighths(index, tensor);
  for (auto& value : tensor.as<float>()) value += 300;
}

OpCase r2_case(const std::string& name, Shape prediction, Shape target) {
  return {.name = name,
          .attributes = {},
          .inputs = {{DType::f32, std::move(prediction)}, {DType::f32, std::move(target)}},
          .fill = fill_eighths};
}

}  // namespace

OpCases make_r2_cases() {
  std::vector<OpCase> cases = {
      r2_case("column", {9, 1}, {9}),   r2_case("odd", {5, 37}, {5, 37}), r2_case("image", {3, 4, 5, 2}, {3, 4, 5, 2}),
      r2_case("empty", {0, 7}, {0, 7}), r2_case("far", {9, 1}, {9}),      r2_case("speed", {128, 100}, {128, 100})};
  cases[4].fill = fill_far_eighths;
  cases.back().benchmark = true;
  return {"r2", r2_reference, cases};
}

}  // namespace lockstep::ops
