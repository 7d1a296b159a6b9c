#include <lockstep/error.hpp>
#include <lockstep/plugin.hpp>

#include "parts.hpp"

using namespace lockstep;

Signature of_elements(const std::string& op, std::span<const TensorSpec> inputs) {
  const TensorSpec &prediction = inputs[0], &target = inputs[1];
  const bool floats = prediction.dtype == DType::f32 && target.dtype == DType::f32;
  if (!floats || prediction.shape.empty() || prediction.elements() != target.elements()) {
    throw Error(ExitCode::configuration, op + ": expected a prediction and a target of one size and of f32, found " +
                                             to_string(prediction.shape) + " and " + to_string(target.shape));
  }
  const TensorSpec of_samples{DType::f32, {prediction.shape[0]}};
  return {.outputs = {of_samples, of_samples}, .parameters = {}, .states = {}, .saved = {}};
}

void lockstep::add_plugin(Registries& registries) {
  registries.ops.add(mish());
  registries.ops.add(log_cosh());
  registries.ops.add(percent_error());
  registries.readers.add(libsvm());
}
