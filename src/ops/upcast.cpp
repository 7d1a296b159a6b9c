#include "ops/upcast.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "core/low_precision.hpp"
#include "core/round_up.hpp"
#include "lockstep/error.hpp"

namespace lockstep::ops {

KernelRequest in_float32(KernelRequest request) {
  for (auto* list : {&request.inputs, &request.parameters, &request.outputs}) {
    for (TensorSpec& spec : *list) {
      if (is_low_precision(spec.dtype)) spec.dtype = DType::f32;
    }
  }
  request.compute_type = DType::f32;
  return request;
}

namespace {

using device::Cast;

/// Every kernel's workspace is aligned, so the inner kernel's must be, too.
std::size_t kernel_aligned(std::size_t bytes) {
  return round_up<std::size_t>(bytes, 256);
}

class CpuCasts final : public Casts {
 public:
  void cast(Cast cast, DType type, const void* from, void* to, std::int64_t n) const override {
    switch (cast) {
      case Cast::upcast:
        return upcast(type, static_cast<const std::uint16_t*>(from), static_cast<float*>(to), n);
      case Cast::downcast:
        return downcast(type, static_cast<const float*>(from), static_cast<std::uint16_t*>(to), n);
      case Cast::round:
        return round_to(type, static_cast<const float*>(from), static_cast<float*>(to), n);
    }
  }
};

/// The float32 copies of one list of operands, in the workspace at an offset.
class Copies {
 public:
  Copies() = default;
  /// `rounded_to`: float32 operands are also copied, and rounded to this type; f32: they are not.
  Copies(const Casts& casts, const std::vector<TensorSpec>& specs, DType rounded_to, std::size_t& at)
      : casts_(&casts), specs_(specs), rounded_to_(rounded_to) {
    for (const TensorSpec& spec : specs) {
      starts_.push_back(at);
      if (copies(spec)) at += kernel_aligned(spec.elements() * sizeof(float));
    }
  }

  /// Returns the operands in the form that the kernel reads.
  std::span<const void* const> read(std::span<const void* const> from, std::byte* workspace) {
    read_.assign(from.begin(), from.end());
    for (std::size_t i = 0; i < read_.size(); ++i) {
      const TensorSpec& spec = specs_[i];
      if (from[i] == nullptr || !copies(spec)) continue;
      std::byte* const copy = workspace + starts_[i];
      if (is_low_precision(spec.dtype)) {
        casts_->cast(Cast::upcast, spec.dtype, from[i], copy, spec.elements());
      } else {
        casts_->cast(Cast::round, rounded_to_, from[i], copy, spec.elements());
      }
      read_[i] = copy;
    }
    return read_;
  }

  /// Returns where the kernel should write what belongs to `to`; written() then moves it there.
  std::span<void* const> write(std::span<void* const> to, std::byte* workspace) {
    write_.assign(to.begin(), to.end());
    for (std::size_t i = 0; i < write_.size(); ++i) {
      if (to[i] != nullptr && is_low_precision(specs_[i].dtype)) write_[i] = workspace + starts_[i];
    }
    return write_;
  }
  void written(std::span<void* const> to) const {
    for (std::size_t i = 0; i < write_.size(); ++i) {
      if (write_[i] == to[i]) continue;
      casts_->cast(Cast::downcast, specs_[i].dtype, write_[i], to[i], specs_[i].elements());
    }
  }

 private:
  bool copies(const TensorSpec& spec) const {
    return is_low_precision(spec.dtype) || (is_low_precision(rounded_to_) && spec.dtype == DType::f32);
  }
  const Casts* casts_ = nullptr;
  std::vector<TensorSpec> specs_;
  DType rounded_to_ = DType::f32;
  std::vector<std::size_t> starts_;
  std::vector<const void*> read_;
  std::vector<void*> write_;
};

/// Copies of the float32 parameters, rounded once per version of them; if nothing may be kept, in each call, in the
/// workspace at `at`. Only on the CPU: a GPU keeps them beside the parameters (step/exec/gpu_tensors.hpp).
class RoundedParameters {
 public:
  RoundedParameters(const Casts& casts, const KernelRequest& request, std::size_t& at)
      : casts_(casts), specs_(request.parameters), rounded_to_(request.compute_type), keeps_(request.keeps_weights) {
    for (const TensorSpec& spec : specs_) {
      const bool rounded = is_low_precision(rounded_to_) && spec.dtype == DType::f32 && spec.shape.size() > 1;
      rounds_ = rounds_ || rounded;
      is_rounded_.push_back(rounded);
      copies_.emplace_back(rounded && keeps_ ? spec.bytes() : 0);
      starts_.push_back(at);
      if (rounded && !keeps_) at += kernel_aligned(spec.bytes());
    }
  }

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const AlignedBytes& copy : copies_) sum += copy.size();
    return sum;
  }

  std::span<const void* const> read(std::span<const void* const> from, const StepContext* step, void* workspace) {
    if (!rounds_) return from;
    pointers_.assign(from.begin(), from.end());
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (!is_rounded_[i]) continue;
      std::byte* const to = keeps_ ? copies_[i].data() : static_cast<std::byte*>(workspace) + starts_[i];
      if (!keeps_ || !version_ || step->parameters_version != *version_) {
        casts_.cast(Cast::round, rounded_to_, from[i], to, specs_[i].elements());
      }
      pointers_[i] = to;
    }
    version_ = step->parameters_version;
    return pointers_;
  }

 private:
  const Casts& casts_;
  std::vector<TensorSpec> specs_;
  DType rounded_to_;
  bool keeps_, rounds_ = false;
  std::vector<bool> is_rounded_;      ///< by parameter
  std::vector<AlignedBytes> copies_;  ///< by parameter; empty if it is not rounded, or its copy is not kept
  std::vector<std::size_t> starts_;   ///< by parameter, offset in the workspace
  std::optional<std::uint64_t> version_;
  std::vector<const void*> pointers_;
};

class UpcastKernel final : public Kernel {
 public:
  UpcastKernel(const KernelFactory& make, const KernelRequest& request, std::shared_ptr<const Casts> casts)
      : casts_(std::move(casts)),
        kernel_(make(in_float32(request))),
        bytes_(kernel_aligned(kernel_->workspace_bytes())),
        rounded_(*casts_, request, bytes_) {
    inputs_ = Copies(*casts_, request.inputs, request.compute_type, bytes_);
    parameters_ = Copies(*casts_, request.parameters, DType::f32, bytes_);
    outputs_ = Copies(*casts_, request.outputs, DType::f32, bytes_);
    output_gradients_ = Copies(*casts_, request.outputs, request.compute_type, bytes_);
    input_gradients_ = Copies(*casts_, request.inputs, DType::f32, bytes_);
  }

  std::size_t workspace_bytes() const override { return bytes_; }
  std::size_t kept_bytes() const override { return kernel_->kept_bytes() + rounded_.bytes(); }
  std::string algorithms() const override { return kernel_->algorithms(); }
  bool adds_gradient(std::size_t parameter) const override { return kernel_->adds_gradient(parameter); }

  bool can_recompute() const override { return kernel_->can_recompute(); }

  void forward(const ForwardCall& call) override { run(call, &Kernel::forward); }
  void recompute(const ForwardCall& call) override { run(call, &Kernel::recompute); }

  void backward(const BackwardCall& call) override {
    auto* const workspace = static_cast<std::byte*>(call.workspace);
    BackwardCall inner = call;
    inner.inputs = inputs_.read(call.inputs, workspace);
    inner.outputs = outputs_.read(call.outputs, workspace);
    inner.output_gradients = output_gradients_.read(call.output_gradients, workspace);
    inner.parameters = parameters_.read(rounded_.read(call.parameters, call.step, workspace), workspace);
    inner.input_gradients = input_gradients_.write(call.input_gradients, workspace);
    kernel_->backward(inner);
    input_gradients_.written(call.input_gradients);
  }

 private:
  void run(const ForwardCall& call, void (Kernel::*make)(const ForwardCall&)) {
    auto* const workspace = static_cast<std::byte*>(call.workspace);
    ForwardCall inner = call;
    inner.inputs = inputs_.read(call.inputs, workspace);
    inner.parameters = parameters_.read(rounded_.read(call.parameters, call.step, workspace), workspace);
    inner.outputs = outputs_.write(call.outputs, workspace);
    (kernel_.get()->*make)(inner);
    outputs_.written(call.outputs);
  }

  std::shared_ptr<const Casts> casts_;
  std::unique_ptr<Kernel> kernel_;
  std::size_t bytes_ = 0;
  RoundedParameters rounded_;
  Copies inputs_, parameters_, outputs_, output_gradients_, input_gradients_;
};

}  // namespace

std::shared_ptr<const Casts> cpu_casts() {
  return std::make_shared<CpuCasts>();
}

bool needs_upcast(const KernelRequest& request) {
  const auto is_low = [](const TensorSpec& spec) { return is_low_precision(spec.dtype); };
  return is_low_precision(request.compute_type) || std::any_of(request.inputs.begin(), request.inputs.end(), is_low) ||
         std::any_of(request.outputs.begin(), request.outputs.end(), is_low);
}

std::unique_ptr<Kernel> make_upcast_kernel(const KernelFactory& make, const KernelRequest& request,
                                           const std::shared_ptr<const Casts>& casts) {
  LOCKSTEP_CHECK(!request.rounded_gradient.rounds(), "a gradient that a kernel reads by itself");
  return std::make_unique<UpcastKernel>(make, request, casts);
}

std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker, const KernelRequest& request,
                                    const std::shared_ptr<const Casts>& casts) {
  if (!needs_upcast(request)) return maker.make(request);
  auto kernel = maker.takes_low_precision ? maker.make(request) : nullptr;
  return kernel != nullptr ? std::move(kernel) : make_upcast_kernel(maker.make, request, casts);
}

}  // namespace lockstep::ops
