#include "step/exec/micro_batch_runner.hpp"

#include <algorithm>
#include <array>

#include "core/round_up.hpp"
#include "core/spans.hpp"

namespace lockstep::exec {

namespace {

constexpr std::int64_t kScratchAlignment = 16;             // floats
const std::string kSumOfGradients = "a sum of gradients";  // NOLINT(cert-err58-cpp): for errors

std::span<const void* const> constant(const std::vector<void*>& list) {
  return {const_cast<const void* const*>(list.data()), list.size()};
}
std::span<float* const> floats(const std::vector<void*>& list) {
  return {reinterpret_cast<float* const*>(list.data()), list.size()};
}

/// Adds its lifetime to `seconds`, which may be null.
class KernelTimer {
 public:
  explicit KernelTimer(double* seconds) : seconds_(seconds) {
    if (seconds_ != nullptr) start_ = Clock::now();
  }
  ~KernelTimer() {
    if (seconds_ != nullptr) *seconds_ += seconds_since(start_);
  }
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

 private:
  double* seconds_;
  Clock::time_point start_;
};

std::int64_t aligned(std::int64_t elements) {
  return round_up(elements, kScratchAlignment);
}

/// Scratch gradients follow the program's own memory, starting on a cache line of their own.
std::size_t scratch_offset(const Program& program) {
  return round_up<std::size_t>(static_cast<std::size_t>(program.arena_bytes), 64);
}

/// Large enough for all slots of any one instruction.
std::size_t scratch_bytes(const Program& program) {
  std::int64_t max = 0;
  for (const Instruction& instruction : program.instructions) {
    std::int64_t elements = 0;
    for (const auto* list : {&instruction.statistics, &instruction.parameter_gradients}) {
      for (const Location& location : *list) {
        if (location.space != Space::slot) continue;
        elements += aligned(program.slots[location.index].elements);
      }
    }
    max = std::max(max, elements);
  }
  return max * sizeof(float);
}

}  // namespace

std::size_t MicroBatchRunner::arena_bytes(const Program& program) {
  return scratch_offset(program) + scratch_bytes(program);
}

MicroBatchRunner::MicroBatchRunner(const Program& program, KernelSet kernels)
    : program_(program), kernels_(std::move(kernels)), stream_(kernels_.stream()) {}

void MicroBatchRunner::begin() {
  begin(stream_.reserve_arena(arena_bytes(program_)));
}

void MicroBatchRunner::begin(std::byte* arena) {
  arena_ = arena;
  scratch_ = arena_ + scratch_offset(program_);
}

void* MicroBatchRunner::pointer(const Location& location, const MicroBatchOperands& operands) const {
  const std::size_t index = location.index;
  // Kernels see inputs, parameters and states as const; one type of list holds them all.
  switch (location.space) {
    case Space::none:
      return nullptr;
    case Space::arena:
      return arena_ + location.index;
    case Space::input:
      return const_cast<void*>(operands.inputs[index]);
    case Space::parameter:
      return const_cast<float*>(operands.model.parameters[index]);
    case Space::low_precision:
      return const_cast<void*>(operands.model.low_precision[index]);
    case Space::state:
      return const_cast<float*>(operands.model.states[index]);
    case Space::slot:
      return operands.slots[index].data;
    case Space::received:
      return const_cast<void*>(operands.received[index]);
    case Space::arrived:
      return const_cast<void*>(operands.arrived[index]);
  }
  return nullptr;
}

void MicroBatchRunner::bind(const std::vector<Location>& from, const MicroBatchOperands& operands,
                            std::vector<void*>& to) const {
  to.clear();
  for (const Location& location : from) to.push_back(pointer(location, operands));
}

std::uint64_t MicroBatchRunner::use_scratch(const std::vector<Location>& slots, const MicroBatchOperands& operands,
                                            const Kernel* kernel, std::vector<void*>& pointers) {
  auto* free = reinterpret_cast<float*>(scratch_);
  std::uint64_t add_to = 0;
  scratch_gradients_.clear();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].space != Space::slot) continue;
    const std::size_t slot = slots[i].index;
    if (!operands.slots[slot].add) continue;
    if (kernel != nullptr && i < 64 && kernel->adds_gradient(i)) {
      add_to |= std::uint64_t{1} << i;
      continue;
    }
    pointers[i] = free;
    scratch_gradients_.push_back({operands.slots[slot].data, free, program_.slots[slot].elements});
    free += aligned(program_.slots[slot].elements);
  }
  return add_to;
}

void MicroBatchRunner::add_scratch() {
  for (const auto& [slot, scratch, elements] : scratch_gradients_) {
    stream_.add(DType::f32, slot, scratch, slot, elements);
  }
}

void MicroBatchRunner::scale_loss(std::int32_t node, const float* factor) {
  if (factor == nullptr) return;
  const auto& elements = kernels_.loss_inputs(node);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    auto* const gradient = static_cast<float*>(input_gradients_[i]);
    if (gradient != nullptr) stream_.scale(gradient, factor, elements[i], elements[i]);
  }
}

// Losses, counts or gradients: a row for each sample.
void MicroBatchRunner::scale_rows(const std::vector<void*>& values, std::span<const std::int64_t> elements,
                                  std::int64_t samples, const float* factors) {
  for (std::size_t i = 0; samples > 0 && i < elements.size(); ++i) {
    auto* const rows = static_cast<float*>(values[i]);
    if (rows != nullptr) stream_.scale(rows, factors, elements[i], elements[i] / samples);
  }
}

const std::string& MicroBatchRunner::label(std::size_t instruction) const {
  const std::int32_t node = program_.instructions[instruction].node;
  return node < 0 ? kSumOfGradients : kernels_.label(node);
}

void MicroBatchRunner::run(std::size_t number, const MicroBatchOperands& operands) {
  const Instruction& instruction = program_.instructions[number];
  const TraceRange range(ranges_, label(number));
  stream_.enter(operands.step, label(number));
  bind(instruction.inputs, operands, inputs_);
  bind(instruction.outputs, operands, outputs_);
  if (instruction.kind == Instruction::Kind::add) {
    const KernelTimer timer(kernel_seconds_);
    return stream_.add(instruction.dtype, inputs_[0], inputs_[1], outputs_[0], instruction.elements);
  }
  if (kernels_.weighted_samples(instruction.node) > 0) {
    weights_ = static_cast<const float*>(inputs_.back());
    inputs_.pop_back();
  }
  bind(instruction.parameters, operands, parameters_);
  bind(instruction.states, operands, states_);
  bind(instruction.saved, operands, saved_);
  instruction.kind == Instruction::Kind::backward ? run_backward(instruction, operands)
                                                  : run_forward(instruction, operands);
}

void MicroBatchRunner::run_forward(const Instruction& instruction, const MicroBatchOperands& operands) {
  bind(instruction.statistics, operands, statistics_);
  use_scratch(instruction.statistics, operands, nullptr, statistics_);
  const ForwardCall call{.inputs = constant(inputs_),
                         .parameters = constant(parameters_),
                         .states = constant(states_),
                         .statistics = floats(statistics_),
                         .outputs = outputs_,
                         .saved = saved_,
                         .workspace = pointer(instruction.workspace, operands),
                         .step = operands.context,
                         .stream = stream_.of_kernels()};
  Kernel& kernel = *kernels_.at(instruction.node);
  const KernelTimer timer(kernel_seconds_);
  instruction.kind == Instruction::Kind::forward ? kernel.forward(call) : kernel.recompute(call);
  const std::int64_t samples = kernels_.weighted_samples(instruction.node);
  scale_rows(outputs_, std::array{samples, samples}, samples, weights_);
  add_scratch();
}

void MicroBatchRunner::run_backward(const Instruction& instruction, const MicroBatchOperands& operands) {
  Kernel& kernel = *kernels_.at(instruction.node);
  bind(instruction.output_gradients, operands, output_gradients_);
  bind(instruction.input_gradients, operands, input_gradients_);
  bind(instruction.parameter_gradients, operands, parameter_gradients_);
  const std::uint64_t add_to = use_scratch(instruction.parameter_gradients, operands, &kernel, parameter_gradients_);
  const KernelTimer timer(kernel_seconds_);
  // Of several losses, each has the gradient of its samples' sums; its kernel computes for 1.
  const std::int64_t of_several = output_gradients_.empty() ? 0 : kernels_.loss_samples(instruction.node);
  kernel.backward({.inputs = constant(inputs_),
                   .parameters = constant(parameters_),
                   .states = constant(states_),
                   .outputs = constant(outputs_),
                   .saved = constant(saved_),
                   .output_gradients = of_several > 0 ? std::span<const void* const>() : constant(output_gradients_),
                   .input_gradients = input_gradients_,
                   .parameter_gradients = floats(parameter_gradients_),
                   .add_to = add_to,
                   .workspace = pointer(instruction.workspace, operands),
                   .step = operands.context,
                   .stream = stream_.of_kernels(),
                   .input_gradient_term = pointer(instruction.input_gradient_term, operands),
                   .output_gradient_term = pointer(instruction.output_gradient_term, operands)});
  const std::vector<std::int64_t>& elements = kernels_.loss_inputs(instruction.node);
  scale_rows(input_gradients_, elements, kernels_.weighted_samples(instruction.node), weights_);
  if (of_several > 0)
    scale_rows(input_gradients_, elements, of_several, static_cast<const float*>(output_gradients_[0]));
  if (output_gradients_.empty()) scale_loss(instruction.node, operands.loss_scale);
  add_scratch();
}

const float* MicroBatchRunner::result(const Location& location) const {
  if (location.space != Space::arena) return nullptr;
  return reinterpret_cast<const float*>(arena_ + location.index);
}

}  // namespace lockstep::exec
