#include "ops/per_element.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "ops/per_sample.hpp"

namespace lockstep::ops {

Signature elements_signature(const std::string& op, std::span<const TensorSpec> inputs, bool binary) {
  const TensorSpec &prediction = inputs[0], &target = inputs[1];
  Shape column = target.shape;
  column.push_back(1);
  const bool fits = prediction.shape == target.shape || prediction.shape == column;
  const bool typed = target.dtype == DType::f32 || (binary && target.dtype == DType::i32);
  if (prediction.dtype != DType::f32 || !typed || prediction.shape.empty() || !fits) {
    const std::string found = fmt::format("found {} of {} and {} of {}", to_string(prediction.shape),
                                          name_of(prediction.dtype), to_string(target.shape), name_of(target.dtype));
    throw Error(
        ExitCode::configuration,
        binary ? fmt::format("{}: expected a prediction of f32 and a target of its shape, of f32 or i32, {}", op, found)
               : fmt::format("{}: expected a prediction and a target of one shape and of f32, {}", op, found));
  }
  return per_sample_signature(prediction.shape[0]);
}

ElementRows::ElementRows(const KernelRequest& request)
    : batch(request.inputs[0].shape[0]), labels(request.inputs[1].dtype == DType::i32) {
  if (batch > 0) size = request.inputs[0].elements() / batch;
}

const float* ElementRows::target(const void* all, std::int64_t sample, void* workspace) const {
  const std::int64_t first = sample * size;
  if (!labels) return static_cast<const float*>(all) + first;
  const auto* from = static_cast<const std::int32_t*>(all) + first;
  auto* to = static_cast<float*>(workspace);
  for (std::int64_t i = 0; i < size; ++i) {
    if (from[i] != 0 && from[i] != 1) {
      throw Error(ExitCode::data,
                  fmt::format("a label is {}, but the loss expects 0 or 1; for more than two classes use "
                              "the loss cross_entropy",
                              from[i]));
    }
    to[i] = from[i];
  }
  return to;
}

void ElementRows::require_shares(const std::string& op, const float* targets) const {
  for (std::int64_t i = 0; i < size; ++i) {
    if (targets[i] >= 0 && targets[i] <= 1) continue;
    throw Error(ExitCode::data,
                fmt::format("{}: expected targets from 0 to 1, found {}; for other numbers use the loss "
                            "mean_squared_error",
                            op, targets[i]));
  }
}

}  // namespace lockstep::ops
