// add_losses and its kernel for CPUs.
#include <fmt/format.h>

#include <memory>

#include "lockstep/error.hpp"
#include "ops/add_losses/add_losses.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_sample.hpp"

namespace lockstep::ops {

namespace {

class AddLossesCpu final : public Kernel {
 public:
  explicit AddLossesCpu(const KernelRequest& request) : terms_(request) {}

  void forward(const ForwardCall& call) override {
    const LossTerm first = terms_.of(call, 0), second = terms_.of(call, 1);
    for (std::int64_t i = 0; i < terms_.samples; ++i) {
      output(call, 0)[i] = first.value(i) + second.value(i);
      output(call, 1)[i] = 1;
    }
  }

  void backward(const BackwardCall& call) override {
    const float* const dy = call.output_gradients.empty() ? nullptr : output_gradient(call);
    for (const std::size_t term : {std::size_t{0}, std::size_t{1}}) {
      float* const to = input_gradient(call, 2 * term);
      if (to == nullptr) continue;
      const LossTerm of = terms_.of(call, term);
      for (std::int64_t i = 0; i < terms_.samples; ++i) to[i] = of.gradient(i, dy == nullptr ? 1.0F : dy[i]);
    }
  }

 private:
  LossTerms terms_;
};

Signature infer_add_losses(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs) {
  for (const TensorSpec& input : inputs) {
    if (input == inputs[0] && input.dtype == DType::f32 && input.shape.size() == 1) continue;
    throw Error(ExitCode::configuration,
                fmt::format("add_losses: expected losses and counts [batch] of f32, found {} of {}",
                            to_string(input.shape), name_of(input.dtype)));
  }
  return per_sample_signature(inputs[0].shape[0]);
}

AttributeSpec weight_attribute(const std::string& name) {
  return {.name = name,
          .kind = AttributeKind::number,
          .doc = "weight of the " + name + " loss",
          .default_value = 1.0,
          .minimum = 0,
          .above_minimum = true};
}

}  // namespace

OpDef make_add_losses() {
  OpDef op;
  op.name = "add_losses";
  op.doc = "adds two losses of the same samples, each divided by its count and multiplied by its weight";
  op.kind = OpKind::sum;
  op.attributes = {weight_attribute("first"), weight_attribute("second")};
  op.min_inputs = op.max_inputs = 4;
  op.constant_inputs = {1, 3};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = infer_add_losses;
  op.cost = elementwise_cost<5, 4>;
  op.kernels[DeviceKind::cpu] = kernel_of<AddLossesCpu>;
  return op;
}

}  // namespace lockstep::ops
