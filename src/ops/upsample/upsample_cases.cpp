#include <algorithm>
#include <cmath>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

/// The value of an image at a place between its pixels.
double value_at(const DoubleTensor& x, std::int64_t sample, double row, double column, std::int64_t channel) {
  const double last_row = x.shape[1] - 1, last_column = x.shape[2] - 1;
  row = std::clamp(row, 0.0, last_row);
  column = std::clamp(column, 0.0, last_column);
  double value = 0;
  for (std::int64_t r = 0; r < x.shape[1]; ++r) {
    for (std::int64_t c = 0; c < x.shape[2]; ++c) {
      const double share = std::max(0.0, 1 - std::fabs(row - r)) * std::max(0.0, 1 - std::fabs(column - c));
      value += share * x.values[((sample * x.shape[1] + r) * x.shape[2] + c) * x.shape[3] + channel];
    }
  }
  return value;
}

ReferenceResult upsample_reference(const ReferenceCall& call) {
  const DoubleTensor& x = call.inputs[0];
  const auto factors = call.attributes.integers("factor");
  const double rows = factors.front(), columns = factors.back();
  const bool nearest = call.attributes.text("mode") == "nearest";
  const auto place = [nearest](std::int64_t output, double factor) {
    return nearest ? std::floor(output / factor) : (output + 0.5) / factor - 0.5;
  };
  DoubleTensor y{{x.shape[0], x.shape[1] * factors.front(), x.shape[2] * factors.back(), x.shape[3]}, {}};
  for (std::int64_t n = 0; n < y.shape[0]; ++n) {
    for (std::int64_t r = 0; r < y.shape[1]; ++r) {
      for (std::int64_t c = 0; c < y.shape[2]; ++c) {
        for (std::int64_t k = 0; k < y.shape[3]; ++k) {
          y.values.push_back(value_at(x, n, place(r, rows), place(c, columns), k));
        }
      }
    }
  }
  return {{y}, {}};
}

std::vector<OpCase> upsample_cases(const std::string& mode) {
  const auto by = [&mode](std::vector<std::int64_t> factor) {
    return Attributes({{"factor", std::move(factor)}, {"mode", mode}});
  };
  return {
      {.name = mode, .attributes = by({2}), .inputs = {{DType::f32, {2, 3, 5, 3}}}},
      {.name = mode + "_odd", .attributes = by({3}), .inputs = {{DType::f32, {1, 4, 3, 2}}}},
      {.name = mode + "_two_factors", .attributes = by({1, 4}), .inputs = {{DType::f32, {2, 3, 3, 1}}}},
      {.name = mode + "_one_pixel", .attributes = by({3, 2}), .inputs = {{DType::f32, {2, 1, 1, 4}}}},
      {.name = mode + "_empty", .attributes = by({2}), .inputs = {{DType::f32, {0, 3, 3, 2}}}},
      {.name = mode + "_speed", .attributes = by({2}), .inputs = {{DType::f32, {4, 16, 16, 32}}}, .benchmark = true},
  };
}

}  // namespace

OpCases make_upsample_cases() {
  auto cases = upsample_cases("nearest");
  for (auto& own : upsample_cases("bilinear")) cases.push_back(std::move(own));
  return {"upsample", upsample_reference, cases};
}

}  // namespace lockstep::ops
