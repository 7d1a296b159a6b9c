// The CPU's kernels as kernels of a FakeGpu: each call reports to the fake what it reads and writes, and then computes.
// So work on the fake has the CPU's bits, and what a real GPU would leave to chance is detected.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "device/fake_gpu.hpp"
#include "device/gpu/kernel_options.hpp"
#include "lockstep/op.hpp"
#include "ops/relu_after.hpp"
#include "ops/reordered.hpp"

namespace lockstep::exec {

class CheckedKernel final : public Kernel {
 public:
  CheckedKernel(KernelRequest request, std::unique_ptr<Kernel> kernel)
      : request_(std::move(request)), wanted_(request_.gpu->algorithms), kernel_(std::move(kernel)) {}

  [[nodiscard]] std::size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  [[nodiscard]] bool adds_gradient(std::size_t parameter) const override { return kernel_->adds_gradient(parameter); }

  /// STAND_IN_ALGORITHMS, for tests of the handling of algorithms; "%" stands for the rank. With
  /// STAND_IN_ALGORITHMS_TAKEN it is the one that was requested, if any; evaluations must then use rank 0's.
  [[nodiscard]] std::string algorithms() const override {
    const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
    return !wanted_.empty() && takes_algorithms() ? wanted_ : algorithms_of(rank == nullptr ? "0" : rank);
  }

  void forward(const ForwardCall& call) override {
    if (request_.mode == Mode::inference && takes_algorithms())
      LOCKSTEP_CHECK(algorithms() == algorithms_of("0"), "rank 0's algorithms");
    enqueue(call, [this](const ForwardCall& held) { check_forward(held, &Kernel::forward); });
  }
  [[nodiscard]] bool can_recompute() const override { return kernel_->can_recompute(); }
  void recompute(const ForwardCall& call) override {
    enqueue(call, [this](const ForwardCall& held) { check_forward(held, &Kernel::recompute); });
  }
  void backward(const BackwardCall& call) override {
    enqueue(call, [this](const BackwardCall& held) { check_backward(held); });
  }

 private:
  static bool takes_algorithms() { return std::getenv("STAND_IN_ALGORITHMS_TAKEN") != nullptr; }
  static std::string algorithms_of(const char* rank) {
    const char* const given = std::getenv("STAND_IN_ALGORITHMS");
    std::string text = given == nullptr ? "" : given;
    if (const auto at = text.find('%'); at != std::string::npos) text.replace(at, 1, rank);
    return text;
  }

  void check_forward(const ForwardCall& call, void (Kernel::*run)(const ForwardCall&)) {
    read(stream_of(call), call.inputs, request_.inputs);
    read(stream_of(call), call.parameters, request_.parameters);
    read(stream_of(call), call.states, request_.states);
    write(stream_of(call), call.statistics, request_.states);
    write(stream_of(call), call.outputs, request_.outputs);
    write(stream_of(call), call.saved, request_.saved);
    write(stream_of(call), call.workspace, workspace_bytes());
    read(stream_of(call), call.step, sizeof(StepContext));
    (kernel_.get()->*run)(call);
  }
  void check_backward(const BackwardCall& call) {
    read(stream_of(call), call.inputs, request_.inputs);
    read(stream_of(call), call.parameters, request_.parameters);
    read(stream_of(call), call.outputs, request_.outputs);
    read(stream_of(call), call.saved, request_.saved);
    read(stream_of(call), call.output_gradients, request_.outputs);
    LOCKSTEP_CHECK(call.input_gradient_term == nullptr && call.output_gradient_term == nullptr,
                   "the CPU's kernels add no gradients");
    write(stream_of(call), call.input_gradients, request_.inputs);
    write(stream_of(call), call.parameter_gradients, request_.parameters);
    write(stream_of(call), call.workspace, workspace_bytes());
    read(stream_of(call), call.step, sizeof(StepContext));
    kernel_->backward(call);
  }

  using Lists = std::vector<std::shared_ptr<void>>;
  /// The caller's operand lists are valid only during the call, but a graph is launched later: copies them.
  template <class Operand>
  static std::span<Operand> hold(std::span<Operand> list, Lists& lists) {
    auto held = std::make_shared<std::vector<std::remove_const_t<Operand>>>(list.begin(), list.end());
    lists.push_back(held);
    return *held;
  }
  static void hold(ForwardCall& call, Lists& lists) {
    for (auto* list : {&call.inputs, &call.parameters, &call.states}) *list = hold(*list, lists);
    for (auto* list : {&call.outputs, &call.saved}) *list = hold(*list, lists);
    call.statistics = hold(call.statistics, lists);
  }
  static void hold(BackwardCall& call, Lists& lists) {
    for (auto* list :
         {&call.inputs, &call.parameters, &call.states, &call.outputs, &call.saved, &call.output_gradients}) {
      *list = hold(*list, lists);
    }
    call.input_gradients = hold(call.input_gradients, lists);
    call.parameter_gradients = hold(call.parameter_gradients, lists);
  }
  template <class Call, class Check>
  static void enqueue(const Call& call, const Check& check) {
    Lists lists;
    Call held = call;
    hold(held, lists);
    fake(stream_of(call)).enqueue(stream_of(call)->handle, [held, lists, check] { check(held); });
  }

  using Specs = std::vector<TensorSpec>;

  template <class Pointers>
  static void read(GpuStream* stream, const Pointers& memory, const Specs& specs) {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if (memory[i] == nullptr) continue;
      fake(stream).kernel_reads(stream->handle, reinterpret_cast<const std::byte*>(memory[i]), specs.at(i).bytes());
    }
  }
  static void read(GpuStream* stream, const void* memory, std::size_t bytes) {
    if (memory == nullptr) return;
    fake(stream).kernel_reads(stream->handle, static_cast<const std::byte*>(memory), bytes);
  }
  template <class Pointers>
  static void write(GpuStream* stream, const Pointers& memory, const Specs& specs) {
    for (std::size_t i = 0; i < memory.size(); ++i) write(stream, memory[i], specs.at(i).bytes());
  }
  static void write(GpuStream* stream, void* memory, std::size_t bytes) {
    if (memory == nullptr) return;
    fake(stream).kernel_writes(stream->handle, static_cast<std::byte*>(memory), bytes);
  }
  static device::FakeGpu& fake(GpuStream* stream) { return dynamic_cast<device::FakeGpu&>(stream->gpu); }

  KernelRequest request_;
  std::string wanted_;  ///< GpuKernelOptions::algorithms
  std::unique_ptr<Kernel> kernel_;
};

/// The same kernels, checked.
inline KernelFactory checked(const KernelFactory& make) {
  return [make](const KernelRequest& request) { return std::make_unique<CheckedKernel>(request, make(request)); };
}

/// GPU kernels for every op of `cpu`.
inline std::shared_ptr<const OpRegistry> checked_kernels(const OpRegistry& cpu) {
  auto kernels = std::make_shared<OpRegistry>();
  for (const OpDef* op : cpu.all()) {
    OpDef& copy = kernels->add(*op);
    if (!op->kernels.contains(DeviceKind::cpu)) continue;
    copy.rounds_gradient.clear();
    copy.kernels[DeviceKind::cuda] = checked(ops::by_models_order(ops::with_epilogues_of_gpus(*op)));
  }
  return kernels;
}

}  // namespace lockstep::exec
