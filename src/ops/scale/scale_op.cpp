// scale: factor * x, for example a network's scores before the softmax (Hinton, Vinyals and Dean, 2015, call its
// inverse the temperature). It holds the gradients of the layers before it down without making their rate smaller.
#include <fmt/format.h>

#include <cmath>

#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_scale_cpu(const KernelRequest& request);

namespace {

Signature infer_scale(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const double factor = attributes.number("factor");
  const auto rounded = static_cast<float>(factor);
  if (!std::isfinite(rounded) || (rounded == 0 && factor != 0)) {
    throw Error(ExitCode::configuration, fmt::format("scale: expected a factor that fp32 can hold, found {}", factor));
  }
  if (inputs[0].dtype != DType::f32) {
    throw Error(ExitCode::configuration,
                fmt::format("scale: expected an input of f32, found {}", name_of(inputs[0].dtype)));
  }
  return same_shape(attributes, inputs);
}

}  // namespace

OpDef make_scale() {
  OpDef op;
  op.name = "scale";
  op.doc = "a constant times x";
  op.attributes = {{.name = "factor", .kind = AttributeKind::number, .doc = "the constant"}};
  op.shorthand = "factor";
  op.in_place = {.forward = true, .over_gradient = true};
  op.infer = infer_scale;
  op.cost = elementwise_cost<1, 1>;
  op.kernels[DeviceKind::cpu] = make_scale_cpu;
  return op;
}

}  // namespace lockstep::ops
