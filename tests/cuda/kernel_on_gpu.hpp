// A GPU's kernel under the CPU's interface: operands are copied to the GPU, the kernel is enqueued on a stream, and
// results are copied back. So the tests for CPU kernels can be applied to those on a GPU. Operands and results in one
// place are in one place on the GPU, too.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_memory.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

class KernelOnGpu final : public Kernel {
 public:
  /// The Gpu must outlive it.
  KernelOnGpu(KernelRequest request, const KernelFactory& make, device::Gpu& gpu, device::Gpu::Stream stream)
      : request_(std::move(request)), gpu_(gpu), stream_(stream), done_(gpu.make_event()) {
    if (request_.gpu != nullptr) options_ = *request_.gpu;
    options_.stream = gpu.kernel_stream(stream);
    request_.gpu = &options_;
    kernel_ = make(request_);
  }

  /// Whether the factory made a kernel for this request.
  [[nodiscard]] bool is_there() const { return kernel_ != nullptr; }
  [[nodiscard]] std::string algorithms() const override { return kernel_->algorithms(); }
  [[nodiscard]] bool adds_input_gradient() const override { return kernel_->adds_input_gradient(); }
  [[nodiscard]] bool adds_output_gradients() const override { return kernel_->adds_output_gradients(); }

  void forward(const ForwardCall& call) override {
    Copies copies;
    const auto inputs = in<const void*>(copies, call.inputs, request_.inputs);
    const auto parameters = in<const void*>(copies, call.parameters, request_.parameters);
    const auto states = in<const void*>(copies, call.states, request_.states);
    const auto statistics = out<float*>(copies, call.statistics, request_.states);
    const auto outputs = out<void*>(copies, call.outputs, request_.outputs);
    const auto saved = out<void*>(copies, call.saved, request_.saved);
    const auto step = in<const void*>(copies, std::array{call.step}, {{DType::u8, {sizeof(StepContext)}}});
    const device::GpuBlock workspace = junk(kernel_->workspace_bytes());
    kernel_->forward({.inputs = inputs,
                      .parameters = parameters,
                      .states = states,
                      .statistics = statistics,
                      .outputs = outputs,
                      .saved = saved,
                      .workspace = workspace.get(),
                      .step = static_cast<const StepContext*>(step[0]),
                      .stream = options_.stream});
    fetch(copies);
  }

  void backward(const BackwardCall& call) override {
    Copies copies;
    const auto inputs = in<const void*>(copies, call.inputs, request_.inputs);
    const auto parameters = in<const void*>(copies, call.parameters, request_.parameters);
    const auto states = in<const void*>(copies, call.states, request_.states);
    const auto outputs = in<const void*>(copies, call.outputs, request_.outputs);
    const auto saved = in<const void*>(copies, call.saved, request_.saved);
    const auto output_gradients = in<const void*>(copies, call.output_gradients, request_.outputs);
    const auto term = in<const void*>(copies, std::array{call.input_gradient_term}, request_.inputs);
    const auto term_of_output = in<const void*>(copies, std::array{call.output_gradient_term}, request_.outputs);
    const auto input_gradients = out<void*>(copies, call.input_gradients, request_.inputs);
    const auto parameter_gradients = out<float*>(copies, call.parameter_gradients, in_float32(request_.parameters));
    const auto step = in<const void*>(copies, std::array{call.step}, {{DType::u8, {sizeof(StepContext)}}});
    const device::GpuBlock workspace = junk(kernel_->workspace_bytes());
    kernel_->backward({.inputs = inputs,
                       .parameters = parameters,
                       .states = states,
                       .outputs = outputs,
                       .saved = saved,
                       .output_gradients = output_gradients,
                       .input_gradients = input_gradients,
                       .parameter_gradients = parameter_gradients,
                       .add_to = call.add_to,
                       .workspace = workspace.get(),
                       .step = static_cast<const StepContext*>(step[0]),
                       .stream = options_.stream,
                       .input_gradient_term = term[0],
                       .output_gradient_term = term_of_output[0]});
    fetch(copies);
  }

 private:
  /// A tensor to be copied to the GPU or back.
  struct Copy {
    const void* host;
    std::size_t bytes;
    device::GpuBlock device;
    device::PinnedBlock pinned;
    void* result;  ///< the host's; null for an operand
  };
  using Copies = std::vector<Copy>;

  /// Gradients of parameters are float32, whatever type the parameters have.
  static std::vector<TensorSpec> in_float32(std::vector<TensorSpec> specs) {
    for (TensorSpec& spec : specs) spec.dtype = DType::f32;
    return specs;
  }

  /// Fresh memory, filled so that reading it yields NaN.
  device::GpuBlock junk(std::size_t bytes) {
    device::GpuBlock block(gpu_, bytes);
    const device::PinnedBlock pinned(gpu_, bytes);
    const std::vector<std::byte> of_junk(bytes, std::byte{0xff});
    gpu_.fill(pinned.get(), of_junk.data(), bytes);
    gpu_.copy_in(stream_, block.get(), pinned.get(), bytes);
    gpu_.record(done_, stream_);
    gpu_.wait(done_);
    return block;
  }
  Copy make_copy(const void* host, std::size_t bytes, void* result) {
    return {host, bytes, device::GpuBlock(gpu_, bytes), device::PinnedBlock(gpu_, bytes), result};
  }

  template <class Pointer, class Pointers>
  std::vector<Pointer> in(Copies& copies, const Pointers& memory, const std::vector<TensorSpec>& specs) {
    std::vector<Pointer> pointers;
    for (std::size_t i = 0; i < memory.size(); ++i) {
      pointers.push_back(nullptr);
      if (memory[i] == nullptr) continue;
      Copy copy = make_copy(memory[i], specs.at(i).bytes(), nullptr);
      gpu_.fill(copy.pinned.get(), reinterpret_cast<const std::byte*>(memory[i]), copy.bytes);
      gpu_.copy_in(stream_, copy.device.get(), copy.pinned.get(), copy.bytes);
      pointers.back() = copy.device.get();
      copies.push_back(std::move(copy));
    }
    return pointers;
  }
  /// What the kernel leaves unwritten is junk in the result.
  template <class Pointer, class Pointers>
  std::vector<Pointer> out(Copies& copies, const Pointers& memory, const std::vector<TensorSpec>& specs) {
    std::vector<Pointer> pointers;
    for (std::size_t i = 0; i < memory.size(); ++i) {
      pointers.push_back(nullptr);
      if (memory[i] == nullptr) continue;
      if (const auto operand = std::ranges::find(copies, memory[i], &Copy::host); operand != copies.end()) {
        operand->result = memory[i];
        pointers.back() = static_cast<Pointer>(static_cast<void*>(operand->device.get()));
        continue;
      }
      Copy copy = make_copy(memory[i], specs.at(i).bytes(), memory[i]);
      const std::vector<std::byte> junk(copy.bytes, std::byte{0xff});
      gpu_.fill(copy.pinned.get(), junk.data(), copy.bytes);
      gpu_.copy_in(stream_, copy.device.get(), copy.pinned.get(), copy.bytes);
      pointers.back() = static_cast<Pointer>(static_cast<void*>(copy.device.get()));
      copies.push_back(std::move(copy));
    }
    return pointers;
  }
  void fetch(const Copies& copies) {
    for (const Copy& copy : copies) {
      if (copy.result != nullptr) gpu_.copy_out(stream_, copy.pinned.get(), copy.device.get(), copy.bytes);
    }
    gpu_.record(done_, stream_);
    gpu_.wait(done_);
    for (const Copy& copy : copies) {
      if (copy.result == nullptr) continue;
      gpu_.reads(copy.pinned.get(), copy.bytes);
      std::memcpy(copy.result, copy.pinned.get(), copy.bytes);
    }
  }

  KernelRequest request_;
  GpuKernelOptions options_;
  device::Gpu& gpu_;
  device::Gpu::Stream stream_;
  device::Gpu::Event done_;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace lockstep::ops
