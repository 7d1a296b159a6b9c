#include "lockstep/gradient_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/error.hpp"
#include "lockstep/random.hpp"

namespace lockstep {

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kStep = 1.0 / 64;

Tensor filled(const TensorSpec& spec, float value) {
  Tensor tensor(spec);
  if (spec.dtype == DType::f32) {
    std::fill_n(tensor.as<float>().begin(), tensor.elements(), value);
  } else {
    std::fill_n(tensor.bytes(), spec.bytes(), std::byte{0});  // a number that may be an index
  }
  return tensor;
}

std::vector<Tensor> filled(const std::vector<TensorSpec>& specs, float value) {
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : specs) tensors.push_back(filled(spec, value));
  return tensors;
}

template <class Pointer, class Tensors>
std::vector<Pointer> addresses(Tensors& tensors) {
  std::vector<Pointer> list;
  for (auto& tensor : tensors) list.push_back(static_cast<Pointer>(static_cast<void*>(tensor.bytes())));
  return list;
}

std::vector<TensorSpec> specs_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) specs.push_back(tensor.spec());
  return specs;
}

/// The op with all that it reads and writes.
class TriedOp {
 public:
  TriedOp(const OpDef& op, GradientCheck& check)
      : op_(op),
        attributes_(complete(op.attributes, std::move(check.attributes), "op '" + op.name + "'")),
        inputs_(std::move(check.inputs)),
        signature_(op.infer(attributes_, specs_of(inputs_))),
        random_(check.seed, 0) {
    KernelRequest request;
    request.node = op.name;
    request.attributes = &attributes_;
    request.inputs = specs_of(inputs_);
    for (const ParameterSpec& parameter : signature_.parameters) {
      request.parameters.push_back({DType::f32, parameter.shape});
      parameters_.push_back(drawn(request.parameters.back()));
    }
    for (const StateSpec& state : signature_.states) {
      request.states.push_back({DType::f32, state.shape});
      states_.push_back(filled(request.states.back(), 0.5F));
    }
    request.outputs = signature_.outputs;
    request.saved = signature_.saved;
    const auto cpu = op.kernels.find(DeviceKind::cpu);
    if (cpu == op.kernels.end()) throw Error(ExitCode::usage, "the op '" + op.name + "' has no kernel for the CPU");
    kernel_ = cpu->second(request);
    statistics_ = filled(request.states, kNaN);
    outputs_ = filled(signature_.outputs, kNaN);
    saved_ = filled(signature_.saved, kNaN);
    if (op.kind != OpKind::loss) weight_ = drawn(signature_.outputs.at(0));
    workspace_ = AlignedBytes(std::max<std::size_t>(kernel_->workspace_bytes(), 1));
  }

  /// Of all that has a gradient: "input 0", "weight".
  std::vector<std::pair<std::string, Tensor*>> variables() {
    std::vector<std::pair<std::string, Tensor*>> list;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (has_gradient(i)) list.emplace_back(fmt::format("input {}", i), &inputs_[i]);
    }
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      list.emplace_back(signature_.parameters[i].name, &parameters_[i]);
    return list;
  }

  /// The sum of output 0, weighted.
  double value() {
    junk();
    const auto inputs = addresses<const void*>(inputs_), parameters = addresses<const void*>(parameters_),
               states = addresses<const void*>(states_);
    const auto outputs = addresses<void*>(outputs_), saved = addresses<void*>(saved_);
    const auto statistics = addresses<float*>(statistics_);
    kernel_->forward({.inputs = inputs,
                      .parameters = parameters,
                      .states = states,
                      .statistics = statistics,
                      .outputs = outputs,
                      .saved = saved,
                      .workspace = workspace_.data(),
                      .step = &step_});
    const auto made = outputs_.at(0).as<float>();
    double sum = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
      sum += static_cast<double>(made[i]) * (op_.kind == OpKind::loss ? 1.0 : weight_.as<float>()[i]);
    }
    return sum;
  }

  /// In the order of variables().
  std::vector<Tensor> gradients() {
    (void)value();
    junk();
    std::vector<Tensor> made;
    for (const auto& [name, tensor] : variables()) made.push_back(filled(tensor->spec(), kNaN));
    std::vector<void*> input_gradients;
    std::vector<float*> parameter_gradients;
    std::size_t next = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      input_gradients.push_back(has_gradient(i) ? made[next++].bytes() : nullptr);
    }
    for (std::size_t i = 0; i < parameters_.size(); ++i) parameter_gradients.push_back(made[next++].as<float>().data());
    auto unread_inputs = filled(specs_of(inputs_), kNaN), unread_outputs = filled(signature_.outputs, kNaN);
    const auto inputs = addresses<const void*>(op_.backward_reads.inputs ? inputs_ : unread_inputs);
    const auto outputs = addresses<const void*>(op_.backward_reads.outputs ? outputs_ : unread_outputs);
    const auto parameters = addresses<const void*>(parameters_), states = addresses<const void*>(states_),
               saved = addresses<const void*>(saved_);
    const std::array<const void*, 1> of_output{weight_.bytes()};
    kernel_->backward({.inputs = inputs,
                       .parameters = parameters,
                       .states = states,
                       .outputs = outputs,
                       .saved = saved,
                       .output_gradients = std::span(of_output).first(op_.kind == OpKind::loss ? 0 : 1),
                       .input_gradients = input_gradients,
                       .parameter_gradients = parameter_gradients,
                       .workspace = workspace_.data(),
                       .step = &step_});
    return made;
  }

 private:
  bool has_gradient(std::size_t input) const {
    const auto& constant = op_.constant_inputs;
    const bool is_constant = std::find(constant.begin(), constant.end(), static_cast<int>(input)) != constant.end();
    return inputs_[input].dtype() == DType::f32 && !is_constant;
  }
  Tensor drawn(const TensorSpec& spec) {
    Tensor tensor(spec);
    for (float& value : tensor.as<float>()) value = random_.between(-0.5F, 0.5F);
    return tensor;
  }
  void junk() { std::fill_n(workspace_.data(), workspace_.size(), std::byte{0xff}); }

  const OpDef& op_;
  const Attributes attributes_;
  std::vector<Tensor> inputs_, parameters_, states_;
  const Signature signature_;
  RandomStream random_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Tensor> statistics_, outputs_, saved_;
  Tensor weight_;
  AlignedBytes workspace_;
  const StepContext step_{.seed = 1, .step = 1};
};

/// d value / d x, by a stencil of five points (Abramowitz and Stegun, 25.3.6).
double slope(TriedOp& trial, float& x) {
  const float here = x;
  const auto at = [&](double steps) {
    x = static_cast<float>(here + steps * kStep);
    return trial.value();
  };
  const double far = at(2) - at(-2), near = at(1) - at(-1);
  x = here;
  return (8 * near - far) / (12 * kStep);
}

}  // namespace

double check_gradient(const OpDef& op, GradientCheck check) {
  if (!op.differentiable) throw Error(ExitCode::usage, "the op '" + op.name + "' is not differentiable");
  TriedOp trial(op, check);
  const std::vector<Tensor> made = trial.gradients();
  const auto variables = trial.variables();
  if (variables.empty())
    throw Error(ExitCode::usage, "the op '" + op.name + "' has no input or parameter with a gradient");
  double largest = 0;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    const auto& [name, variable] = variables[v];
    const auto found = made[v].as<float>();
    double scale = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!std::isfinite(found[i])) {
        throw Error(ExitCode::usage,
                    fmt::format("op '{}', {}, element {}: expected a finite gradient, found {} by backward()", op.name,
                                name, i, found[i]));
      }
      scale = std::max(scale, std::abs(static_cast<double>(found[i])));
    }
    const std::int64_t elements = variable->elements(),
                       tried = std::min(elements, std::max<std::int64_t>(check.most_elements, 1));
    for (std::int64_t t = 0; t < tried; ++t) {
      const std::size_t i = t * elements / tried;
      const double expected = slope(trial, variable->as<float>()[i]);
      const double difference = std::abs(found[i] - expected) / std::max(scale, 1e-6);
      largest = std::max(largest, difference);
      if (difference <= check.tolerance) continue;  // false for NaN, too
      throw Error(
          ExitCode::usage,
          fmt::format("op '{}', {}, element {}: expected the gradient {:.6g}, by differences of forward(), found "
                      "{:.6g} by backward()",
                      op.name, name, i, expected, found[i]));
    }
  }
  return largest;
}

}  // namespace lockstep
