// The CPU's kernels in place of a GPU's, for tests: where lowering for GPUs fuses a relu into an op whose CPU kernel
// does not support it, that kernel and the relu are computed in sequence, which has the same bits.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

class ReluAfter final : public Kernel {
 public:
  /// `kernel`: for the op alone, on float32 tensors.
  ReluAfter(std::unique_ptr<Kernel> kernel, std::int64_t outputs)
      : kernel_(std::move(kernel)), gradient_(static_cast<std::size_t>(outputs)) {}

  [[nodiscard]] std::size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  [[nodiscard]] std::string algorithms() const override { return kernel_->algorithms(); }
  [[nodiscard]] bool adds_gradient(std::size_t parameter) const override { return kernel_->adds_gradient(parameter); }

  void forward(const ForwardCall& call) override {
    kernel_->forward(call);
    auto* y = static_cast<float*>(call.outputs[0]);
    std::transform(y, y + gradient_.size(), y, [](float value) { return value > 0 ? value : 0; });
  }
  void backward(const BackwardCall& call) override {
    const auto *y = static_cast<const float*>(call.outputs[0]),
               *dy = static_cast<const float*>(call.output_gradients[0]);
    for (std::size_t i = 0; i < gradient_.size(); ++i) gradient_[i] = y[i] > 0 ? dy[i] : 0;
    const void* before = gradient_.data();
    BackwardCall inner = call;
    inner.output_gradients = std::span(&before, 1);
    kernel_->backward(inner);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::vector<float> gradient_;  ///< the gradient of the op's own output
};

/// The CPU's kernels of an op, with the GPUs' epilogues.
inline KernelFactory with_epilogues_of_gpus(const OpDef& op) {
  const auto found = op.epilogues.find(DeviceKind::cpu);
  const std::vector<std::string> own = found == op.epilogues.end() ? std::vector<std::string>{} : found->second;
  return [own, make = op.kernels.at(DeviceKind::cpu)](const KernelRequest& request) -> std::unique_ptr<Kernel> {
    if (request.epilogue.empty() || std::ranges::find(own, request.epilogue) != own.end()) return make(request);
    LOCKSTEP_CHECK(request.epilogue == "relu", "an epilogue that tests know");
    KernelRequest alone = request;
    alone.epilogue.clear();
    return std::make_unique<ReluAfter>(make(alone), request.outputs[0].elements());
  };
}

}  // namespace lockstep::ops
