// dropout: in training each element is 0 with probability `rate`, else divided by 1 - rate; in inference y = x.
//
// The mask is a function of the job's seed, the node's name, the step, the sample's position in the global batch
// and the element's row-major index in the sample; nothing is stored, backward draws it again.
#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/elementwise.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_dropout_cpu(const KernelRequest& request);

namespace {

Signature infer_dropout(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  if (inputs[0].shape.empty() || inputs[0].dtype != DType::f32) {
    throw Error(ExitCode::configuration, fmt::format("dropout: expected an input [batch, ...] of f32, found {} of {}",
                                                     to_string(inputs[0].shape), name_of(inputs[0].dtype)));
  }
  return same_shape(attributes, inputs);
}

}  // namespace

OpDef make_dropout() {
  OpDef op;
  op.name = "dropout";
  op.doc = "leaves out elements at random while training";
  op.attributes = {{.name = "rate",
                    .kind = AttributeKind::number,
                    .doc = "probability that an element is left out",
                    .minimum = 0,
                    .maximum = 1,
                    .below_maximum = true}};
  op.shorthand = "rate";
  op.in_place = {.forward = true, .over_gradient = true};
  op.infer = infer_dropout;
  op.cost = elementwise_cost<15, 15>;
  op.kernels[DeviceKind::cpu] = make_dropout_cpu;
  return op;
}

}  // namespace lockstep::ops
