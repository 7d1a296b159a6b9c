// Ops that treat a tensor as rows of its last dimension: softmax, layer_norm, rms_norm.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

struct Rows {
  std::int64_t count = 0;
  std::int64_t size = 0;

  explicit Rows(const TensorSpec& spec) : size(spec.shape.back()) { count = size == 0 ? 0 : spec.elements() / size; }
};

/// Throws Error(configuration) unless the input is [batch, ..., size] of f32.
inline void expect_rows(const std::string& op, const TensorSpec& input) {
  if (input.dtype == DType::f32 && input.shape.size() >= 2) return;
  throw Error(ExitCode::configuration,
              fmt::format("{}: expected an input [batch, ..., features] of f32, found {} of {}", op,
                          to_string(input.shape), name_of(input.dtype)));
}

/// One value a row: [batch, ...].
inline TensorSpec per_row(const TensorSpec& input) {
  return {DType::f32, Shape(input.shape.begin(), input.shape.end() - 1)};
}

}  // namespace lockstep::ops
