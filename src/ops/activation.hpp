// Elementwise functions as ops: gelu, silu, sigmoid, tanh. Their files give a name, a doc and two functions.
#pragma once

#include <memory>
#include <string>

#include "ops/elementwise.hpp"

namespace lockstep::ops {

using ActivationForward = void (*)(const float* x, float* y, std::int64_t n);
/// `seen` is the input or the output, as the op's backward_reads says.
using ActivationBackward = void (*)(const float* seen, const float* dy, float* dx, std::int64_t n);

class ActivationCpu final : public Kernel {
 public:
  ActivationCpu(std::int64_t n, bool reads_output, ActivationForward function, ActivationBackward gradient)
      : n_(n), reads_output_(reads_output), function_(function), gradient_(gradient) {}

  void forward(const ForwardCall& call) override { function_(input(call), output(call), n_); }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const float* seen = reads_output_ ? static_cast<const float*>(call.outputs[0]) : input(call);
    gradient_(seen, output_gradient(call), input_gradient(call), n_);
  }

 private:
  std::int64_t n_;
  bool reads_output_;
  ActivationForward function_;
  ActivationBackward gradient_;
};

/// All but the kernel.
[[nodiscard]] OpDef activation(const std::string& name, const std::string& doc, bool reads_output);

}  // namespace lockstep::ops
