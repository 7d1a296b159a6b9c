// linear in double, and the attributes of its cases.
#pragma once

#include "ops/op_case.hpp"

namespace lockstep::ops {

inline DoubleTensor linear_reference(const ReferenceCall& call, const DoubleTensor& x) {
  const DoubleTensor& weight = call.parameters[0];
  const auto out = static_cast<std::size_t>(weight.shape[0]), in = static_cast<std::size_t>(weight.shape[1]);
  const std::size_t rows = x.values.size() / in;
  DoubleTensor y{x.shape, std::vector<double>(rows * out)};
  y.shape.back() = weight.shape[0];
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t o = 0; o < out; ++o) {
      double sum = call.parameters.size() > 1 ? call.parameters[1].values[o] : 0;
      for (std::size_t i = 0; i < in; ++i) sum += x.values[row * in + i] * weight.values[o * in + i];
      y.values[row * out + o] = sum;
    }
  }
  return y;
}

inline Attributes features(std::int64_t count, bool bias = true) {
  return Attributes({{"features", count}, {"bias", bias}});
}

}  // namespace lockstep::ops
