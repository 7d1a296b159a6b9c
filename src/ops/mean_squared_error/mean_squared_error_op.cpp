// mean_squared_error: (prediction - target)^2, the mean over all elements of all samples; a loss. A target [b] fits a
// prediction [b, 1].
#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_sample.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_mean_squared_error_cpu(const KernelRequest& request);

namespace {

Signature infer_mean_squared_error(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs) {
  const TensorSpec &prediction = inputs[0], &target = inputs[1];
  Shape column = target.shape;
  column.push_back(1);
  const bool fits = prediction.shape == target.shape || prediction.shape == column;
  if (prediction.dtype != DType::f32 || target.dtype != DType::f32 || prediction.shape.empty() || !fits) {
    throw Error(
        ExitCode::configuration,
        fmt::format(
            "mean_squared_error: expected a prediction and a target of one shape and of f32, found {} of {} and "
            "{} of {}",
            to_string(prediction.shape), name_of(prediction.dtype), to_string(target.shape), name_of(target.dtype)));
  }
  return per_sample_signature(prediction.shape[0]);
}

}  // namespace

OpDef make_mean_squared_error() {
  OpDef op;
  op.name = "mean_squared_error";
  op.doc = "the mean of squared differences";
  op.kind = OpKind::loss;
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {1};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = infer_mean_squared_error;
  op.cost = elementwise_cost<3, 2>;
  op.kernels[DeviceKind::cpu] = make_mean_squared_error_cpu;
  return op;
}

}  // namespace lockstep::ops
