#include "ops/activation.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::ops {

OpDef activation(const std::string& name, const std::string& doc, bool reads_output) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.backward_reads = {.inputs = !reads_output, .outputs = reads_output};
  op.in_place = {.forward = true, .over_gradient = true, .over_input = !reads_output};
  op.infer = [name](const Attributes& attributes, std::span<const TensorSpec> inputs) {
    if (inputs[0].dtype != DType::f32) {
      throw Error(ExitCode::configuration,
                  fmt::format("{}: expected an input of f32, found {}", name, name_of(inputs[0].dtype)));
    }
    return same_shape(attributes, inputs);
  };
  op.cost = elementwise_cost<20, 25>;
  return op;
}

}  // namespace lockstep::ops
