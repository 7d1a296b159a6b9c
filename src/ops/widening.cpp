#include "ops/widening.hpp"

#include <algorithm>
#include <cstddef>

#include "core/narrow.hpp"

namespace lockstep::ops {

namespace {

constexpr std::size_t kAlignment = 64;

std::size_t up(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

KernelRequest in_float32(KernelRequest request) {
  for (auto* list : {&request.inputs, &request.outputs}) {
    for (TensorSpec& spec : *list) {
      if (is_narrow(spec.dtype)) spec.dtype = DType::f32;
    }
  }
  request.products = DType::f32;
  return request;
}

/// The float32 copies of one list of operands, from an offset of the workspace on.
class Copies {
 public:
  Copies() = default;
  /// `round`: what stands in float32 is rounded to this type; f32: it stays as it is.
  Copies(const std::vector<TensorSpec>& specs, DType round, std::size_t& at) : specs_(specs), round_(round) {
    for (const TensorSpec& spec : specs) {
      starts_.push_back(at);
      if (copies(spec)) at += up(static_cast<std::size_t>(spec.elements()) * sizeof(float));
    }
  }

  /// Operands that a kernel reads, as it wants them.
  std::span<const void* const> read(std::span<const void* const> from, std::byte* workspace) {
    read_.assign(from.begin(), from.end());
    for (std::size_t i = 0; i < read_.size(); ++i) {
      if (from[i] == nullptr || !copies(specs_[i])) continue;
      auto* const copy = reinterpret_cast<float*>(workspace + starts_[i]);
      if (is_narrow(specs_[i].dtype)) {
        widen(specs_[i].dtype, static_cast<const std::uint16_t*>(from[i]), copy, specs_[i].elements());
      } else {
        round_to(round_, static_cast<const float*>(from[i]), copy, specs_[i].elements());
      }
      read_[i] = copy;
    }
    return read_;
  }

  /// Where a kernel is to write what goes to `to`; written() brings it there.
  std::span<void* const> write(std::span<void* const> to, std::byte* workspace) {
    write_.assign(to.begin(), to.end());
    for (std::size_t i = 0; i < write_.size(); ++i) {
      if (to[i] != nullptr && is_narrow(specs_[i].dtype)) write_[i] = workspace + starts_[i];
    }
    return write_;
  }
  void written(std::span<void* const> to) const {
    for (std::size_t i = 0; i < write_.size(); ++i) {
      if (write_[i] == to[i]) continue;
      narrow(specs_[i].dtype, static_cast<const float*>(write_[i]), static_cast<std::uint16_t*>(to[i]),
             specs_[i].elements());
    }
  }

 private:
  [[nodiscard]] bool copies(const TensorSpec& spec) const {
    return is_narrow(spec.dtype) || (is_narrow(round_) && spec.dtype == DType::f32);
  }
  std::vector<TensorSpec> specs_;
  DType round_ = DType::f32;
  std::vector<std::size_t> starts_;
  std::vector<const void*> read_;
  std::vector<void*> write_;
};

class WideningKernel final : public Kernel {
 public:
  WideningKernel(const KernelFactory& make, const KernelRequest& request)
      : kernel_(make(in_float32(request))), parameters_(request.parameters), products_(request.products) {
    bytes_ = up(kernel_->workspace_bytes());
    inputs_ = Copies(request.inputs, products_, bytes_);
    outputs_ = Copies(request.outputs, DType::f32, bytes_);
    output_gradients_ = Copies(request.outputs, products_, bytes_);
    input_gradients_ = Copies(request.inputs, DType::f32, bytes_);
    for (const TensorSpec& spec : request.parameters) {
      const bool rounded = is_narrow(products_) && spec.shape.size() > 1;
      rounded_.emplace_back(rounded ? spec.bytes() : 0);
    }
  }

  [[nodiscard]] std::size_t workspace_bytes() const override { return bytes_; }
  [[nodiscard]] bool adds_gradient(std::size_t parameter) const override { return kernel_->adds_gradient(parameter); }

  [[nodiscard]] bool remakes() const override { return kernel_->remakes(); }

  void forward(const ForwardCall& call) override { run(call, &Kernel::forward); }
  void remake(const ForwardCall& call) override { run(call, &Kernel::remake); }

  void backward(const BackwardCall& call) override {
    auto* const workspace = static_cast<std::byte*>(call.workspace);
    BackwardCall inner = call;
    inner.inputs = inputs_.read(call.inputs, workspace);
    inner.outputs = outputs_.read(call.outputs, workspace);
    inner.output_gradients = output_gradients_.read(call.output_gradients, workspace);
    inner.parameters = round_parameters(call.parameters, *call.step);
    inner.input_gradients = input_gradients_.write(call.input_gradients, workspace);
    kernel_->backward(inner);
    input_gradients_.written(call.input_gradients);
  }

 private:
  void run(const ForwardCall& call, void (Kernel::*make)(const ForwardCall&)) {
    auto* const workspace = static_cast<std::byte*>(call.workspace);
    ForwardCall inner = call;
    inner.inputs = inputs_.read(call.inputs, workspace);
    inner.parameters = round_parameters(call.parameters, *call.step);
    inner.outputs = outputs_.write(call.outputs, workspace);
    (kernel_.get()->*make)(inner);
    outputs_.written(call.outputs);
  }

  std::span<const void* const> round_parameters(std::span<const void* const> from, const StepContext& step) {
    pointers_.assign(from.begin(), from.end());
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (rounded_[i].size() == 0) continue;
      auto* const copy = reinterpret_cast<float*>(rounded_[i].data());
      if (!has_rounded_ || step.parameters_version != version_) {
        round_to(products_, static_cast<const float*>(from[i]), copy, parameters_[i].elements());
      }
      pointers_[i] = copy;
    }
    has_rounded_ = true;
    version_ = step.parameters_version;
    return pointers_;
  }

  std::unique_ptr<Kernel> kernel_;
  std::vector<TensorSpec> parameters_;
  DType products_;
  std::size_t bytes_ = 0;
  Copies inputs_, outputs_, output_gradients_, input_gradients_;
  std::vector<AlignedBytes> rounded_;  ///< by parameter; empty for those that stay as they are
  bool has_rounded_ = false;
  std::uint64_t version_ = 0;
  std::vector<const void*> pointers_;
};

}  // namespace

bool wants_widening(const KernelRequest& request) {
  const auto is_narrow_one = [](const TensorSpec& spec) { return is_narrow(spec.dtype); };
  return is_narrow(request.products) || std::any_of(request.inputs.begin(), request.inputs.end(), is_narrow_one) ||
         std::any_of(request.outputs.begin(), request.outputs.end(), is_narrow_one);
}

std::unique_ptr<Kernel> make_widening(const KernelFactory& make, const KernelRequest& request) {
  return std::make_unique<WideningKernel>(make, request);
}

}  // namespace lockstep::ops
