// Kernels whose weight, parameter 0, has another order than the one requested: it is reordered before each call, and
// its gradient afterwards.
#pragma once

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "graph/weight_order.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

class Reordered final : public Kernel {
 public:
  /// `last`: the kernel's own weight has channels last and that of the calls has not; otherwise the reverse.
  Reordered(std::unique_ptr<Kernel> kernel, const TensorSpec& weight, bool last)
      : kernel_(std::move(kernel)),
        sizes_(filter_sizes(weight.shape)),
        element_(size_of(weight.dtype)),
        last_(last),
        weight_(weight.bytes()),
        gradient_(static_cast<std::size_t>(weight.elements()) * sizeof(float)) {}

  [[nodiscard]] std::size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  [[nodiscard]] std::string algorithms() const override { return kernel_->algorithms(); }
  [[nodiscard]] bool adds_gradient(std::size_t parameter) const override {
    return parameter > 0 && kernel_->adds_gradient(parameter);
  }

  void forward(const ForwardCall& call) override {
    ForwardCall inner = call;
    const std::vector<const void*> parameters = take(call.parameters);
    inner.parameters = parameters;
    kernel_->forward(inner);
  }
  void backward(const BackwardCall& call) override {
    BackwardCall inner = call;
    const std::vector<const void*> parameters = take(call.parameters);
    inner.parameters = parameters;
    std::vector<float*> gradients(call.parameter_gradients.begin(), call.parameter_gradients.end());
    float* const wanted = gradients.at(0);
    if (wanted != nullptr) gradients[0] = reinterpret_cast<float*>(gradient_.data());
    inner.parameter_gradients = gradients;
    kernel_->backward(inner);
    if (wanted != nullptr) move(gradient_.data(), reinterpret_cast<std::byte*>(wanted), sizeof(float), !last_);
  }

 private:
  std::vector<const void*> take(std::span<const void* const> given) {
    std::vector<const void*> parameters(given.begin(), given.end());
    move(static_cast<const std::byte*>(given[0]), weight_.data(), element_, last_);
    parameters[0] = weight_.data();
    return parameters;
  }
  /// `to_last`: into channels last; otherwise out of it.
  void move(const std::byte* from, std::byte* to, std::size_t size, bool to_last) const {
    for (std::size_t i = 0; i < gradient_.size() / sizeof(float); ++i) {
      const auto in_model = static_cast<std::size_t>(sizes_.of(static_cast<std::int64_t>(i)));
      std::memcpy(to + (to_last ? i : in_model) * size, from + (to_last ? in_model : i) * size, size);
    }
  }

  std::unique_ptr<Kernel> kernel_;
  FilterSizes sizes_;
  std::size_t element_;
  bool last_;
  std::vector<std::byte> weight_, gradient_;
};

/// Kernels that support only the model's order, for requests of either. Null if `make` returns null.
inline KernelFactory by_models_order(const KernelFactory& make) {
  return [make](const KernelRequest& request) -> std::unique_ptr<Kernel> {
    if (!request.channels_last) return make(request);
    KernelRequest plain = request;
    plain.channels_last = false;
    auto kernel = make(plain);
    if (kernel == nullptr) return nullptr;
    return std::make_unique<Reordered>(std::move(kernel), request.parameters[0], false);
  };
}

/// Kernels that use channels last, under the interface of the model's order. Null if `make` returns null.
inline KernelFactory with_channels_last(const KernelFactory& make) {
  return [make](const KernelRequest& request) -> std::unique_ptr<Kernel> {
    KernelRequest last = request;
    last.channels_last = true;
    auto kernel = make(last);
    if (kernel == nullptr) return nullptr;
    return std::make_unique<Reordered>(std::move(kernel), request.parameters[0], true);
  };
}

}  // namespace lockstep::ops
