// An op that computes the same as relu and lets a test observe it, or slow it down.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "lockstep/op.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep {

/// Called before each micro-batch's forward pass: returns how long to sleep.
using Nap = std::function<std::chrono::milliseconds(Mode mode, std::uint64_t step)>;

class NappingRelu final : public Kernel {
 public:
  NappingRelu(std::unique_ptr<Kernel> relu, Mode mode, Nap nap)
      : relu_(std::move(relu)), mode_(mode), nap_(std::move(nap)) {}
  [[nodiscard]] std::size_t workspace_bytes() const override { return relu_->workspace_bytes(); }
  void forward(const ForwardCall& call) override {
    std::this_thread::sleep_for(nap_(mode_, call.step->step));
    relu_->forward(call);
  }
  void backward(const BackwardCall& call) override { relu_->backward(call); }

 private:
  std::unique_ptr<Kernel> relu_;
  Mode mode_;
  Nap nap_;
};

/// The built-in registries with the op `napping_relu`.
inline Registries with_naps(const Nap& nap) {
  Registries registries = Registries::built_in();
  OpDef op = registries.ops.at("relu");
  op.name = "napping_relu";
  const KernelFactory relu = op.kernels.at(DeviceKind::cpu);
  op.kernels[DeviceKind::cpu] = [relu, nap](const KernelRequest& request) {
    return std::make_unique<NappingRelu>(relu(request), request.mode, nap);
  };
  registries.ops.add(std::move(op));
  return registries;
}

}  // namespace lockstep
