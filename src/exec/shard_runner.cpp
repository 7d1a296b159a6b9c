#include "exec/shard_runner.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/low_precision.hpp"
#include "core/spans.hpp"
#include "core/vectorize.hpp"
#include "device/gpu/kernel_options.hpp"
#include "graph/precision.hpp"
#include "lockstep/error.hpp"
#include "ops/upcast.hpp"

namespace lockstep::exec {

namespace {

LOCKSTEP_VECTORIZED void add_on_cpu(const float* a, const float* b, float* sum, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
}

LOCKSTEP_VECTORIZED void multiply(float* values, float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) values[i] *= factor;
}

std::vector<TensorSpec> specs_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<TensorSpec> specs;
  for (const ValueId id : ids) specs.push_back(graph.at(id).spec);
  return specs;
}

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

constexpr std::int64_t kAsideAlignment = 16;    // floats
const std::string kSum = "a sum of gradients";  // NOLINT(cert-err58-cpp): for errors

std::int64_t aligned(std::int64_t elements) {
  return (elements + kAsideAlignment - 1) / kAsideAlignment * kAsideAlignment;
}

/// What is set aside stands behind the program's own memory, on a cache line of its own.
std::size_t aside_offset(const Program& program) {
  return (static_cast<std::size_t>(program.arena_bytes) + 63) / 64 * 64;
}

/// All slots of one instruction, at most.
std::size_t aside_bytes(const Program& program) {
  std::int64_t most = 0;
  for (const Instruction& instruction : program.instructions) {
    std::int64_t elements = 0;
    for (const auto* list : {&instruction.statistics, &instruction.parameter_gradients}) {
      for (const Location& location : *list) {
        if (location.space != Space::slot) continue;
        elements += aligned(program.slots[static_cast<std::size_t>(location.index)].elements);
      }
    }
    most = std::max(most, elements);
  }
  return static_cast<std::size_t>(most) * sizeof(float);
}

/// An op's own kernel, else the CUDA module's.
ops::KernelMaker maker_of(const OpDef& op, const Device& device, const std::string& label) {
  const OpDef* const of_module = device.gpu_kernels == nullptr ? nullptr : device.gpu_kernels->find(op.name);
  for (const OpDef* from : {&op, of_module}) {
    if (from == nullptr) continue;
    const auto found = from->kernels.find(device.kind());
    if (found != from->kernels.end()) return {found->second, from->takes_low_precision.contains(device.kind())};
  }
  throw Error(ExitCode::configuration,
              fmt::format("{}: expected a kernel of op '{}' for {}, found none; {}", label, op.name,
                          device.is_gpu() ? "GPUs" : "the CPU",
                          device.is_gpu() ? "set device: cpu, or leave this layer out" : "add one to the op"));
}

/// What stands behind "LABEL: "; empty where nothing does.
std::string algorithms_of(const std::vector<std::string>& algorithms, const std::string& label) {
  const std::string begin = label + ": ";
  const auto found = std::find_if(algorithms.begin(), algorithms.end(),
                                  [&](const auto& of_layer) { return of_layer.starts_with(begin); });
  return found == algorithms.end() ? "" : found->substr(begin.size());
}

std::vector<TensorSpec> parameter_specs(const Graph& graph, const Node& node) {
  std::vector<TensorSpec> specs = specs_of(graph, node.parameters);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (node.low_precision_weights && is_low_precision_weight(graph, node, i)) specs[i].dtype = node.compute_type;
  }
  return specs;
}

/// On a worker's stream.
class GpuCasts final : public ops::Casts {
 public:
  explicit GpuCasts(device::GpuLane& lane) : lane_(lane) {}
  void cast(device::Cast cast, DType type, const void* from, void* to, std::int64_t n) const override {
    lane_.gpu.cast(lane_.compute, cast, type, from, to, n);
  }

 private:
  device::GpuLane& lane_;
};

}  // namespace

KernelSet::KernelSet(const Graph& graph, Mode mode, const Device& device, std::size_t worker,
                     const std::vector<std::string>& algorithms) {
  GpuStream* stream = nullptr;
  std::shared_ptr<const ops::Casts> casts = ops::cpu_casts();
  if (device.is_gpu()) {
    device::GpuLane& lane = device.lanes->at(worker);
    lane.gpu.make_current();  // kernels may ask its libraries for algorithms
    stream = lane.gpu.kernel_stream(lane.compute);
    casts = std::make_shared<GpuCasts>(lane);
  }
  for (const Node& node : graph.nodes) {
    labels_.push_back(fmt::format("{} '{}'", node.op->name, node.name));
    auto& loss_inputs = loss_inputs_.emplace_back();
    if (node.op->kind == OpKind::loss) {
      for (const ValueId id : node.inputs) loss_inputs.push_back(graph.at(id).spec.elements());
    }
    scales_loss_ = scales_loss_ || node.compute_type == DType::f16;
    if (node.op->view) {
      kernels_.emplace_back();
      continue;
    }
    KernelRequest request;
    request.node = node.name;
    request.attributes = &node.attributes;
    request.mode = mode;
    request.inputs = specs_of(graph, node.inputs);
    request.parameters = parameter_specs(graph, node);
    request.states = specs_of(graph, node.states);
    request.outputs = specs_of(graph, node.outputs);
    request.saved = node.saved;
    if (node.epilogue != nullptr) request.epilogue = node.epilogue->name;
    request.compute_type = node.compute_type;
    request.channels_last = !node.parameters.empty() && graph.at(node.parameters[0]).channels_last;
    const GpuKernelOptions options{stream, node.fast_float32, algorithms_of(algorithms, labels_.back())};
    if (device.is_gpu()) request.gpu = &options;
    kernels_.push_back(ops::make_kernel(maker_of(*node.op, device, labels_.back()), request, casts));
  }
}

std::size_t KernelSet::workspace_bytes(std::int32_t node) const {
  const Kernel* kernel = at(node);
  return kernel == nullptr ? 0 : kernel->workspace_bytes();
}

std::vector<std::string> KernelSet::algorithms() const {
  std::vector<std::string> of_layers;
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    const std::string chosen = kernels_[i] == nullptr ? "" : kernels_[i]->algorithms();
    if (!chosen.empty()) of_layers.push_back(fmt::format("{}: {}", labels_[i], chosen));
  }
  return of_layers;
}

std::size_t ShardRunner::arena_bytes(const Program& program) {
  return aside_offset(program) + aside_bytes(program);
}

ShardRunner::ShardRunner(const Program& program, KernelSet kernels, device::GpuLane* lane)
    : program_(program), kernels_(std::move(kernels)), lane_(lane) {
  if (lane_ == nullptr) memory_ = AlignedBytes(arena_bytes(program));
  (void)begin();
}

const std::byte* ShardRunner::begin() {
  arena_ = lane_ == nullptr ? memory_.data() : lane_->arena.reserve(arena_bytes(program_));
  aside_start_ = arena_ + aside_offset(program_);
  return arena_;
}

void ShardRunner::add(DType dtype, const void* left, const void* right, void* sum, std::int64_t n) {
  if (lane_ != nullptr) return lane_->gpu.add(lane_->compute, dtype, left, right, sum, n);
  if (dtype == DType::f32) {
    add_on_cpu(static_cast<const float*>(left), static_cast<const float*>(right), static_cast<float*>(sum), n);
  } else {
    add_low_precision(dtype, static_cast<const std::uint16_t*>(left), static_cast<const std::uint16_t*>(right),
                      static_cast<std::uint16_t*>(sum), n);
  }
}

void* ShardRunner::pointer(const Location& location, const ShardBinding& binding) const {
  const auto index = static_cast<std::size_t>(location.index);
  // Kernels see inputs, parameters and states as const; one list type holds them all.
  switch (location.space) {
    case Space::none:
      return nullptr;
    case Space::arena:
      return arena_ + location.index;
    case Space::input:
      return const_cast<void*>(binding.inputs[index]);
    case Space::parameter:
      return const_cast<float*>(binding.parameters[index]);
    case Space::low_precision:
      return const_cast<void*>(binding.low_precision[index]);
    case Space::state:
      return const_cast<float*>(binding.states[index]);
    case Space::slot:
      return binding.slots[index].data;
  }
  return nullptr;
}

void ShardRunner::bind(const std::vector<Location>& from, const ShardBinding& binding, std::vector<void*>& to) const {
  to.clear();
  for (const Location& location : from) to.push_back(pointer(location, binding));
}

std::uint64_t ShardRunner::set_aside(const std::vector<Location>& slots, const ShardBinding& binding,
                                     const Kernel* adding, std::vector<void*>& pointers) {
  auto* free = reinterpret_cast<float*>(aside_start_);
  std::uint64_t add_to = 0;
  aside_.clear();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].space != Space::slot) continue;
    const auto slot = static_cast<std::size_t>(slots[i].index);
    if (!binding.slots[slot].add) continue;
    if (adding != nullptr && i < 64 && adding->adds_gradient(i)) {
      add_to |= std::uint64_t{1} << i;
      continue;
    }
    pointers[i] = free;
    aside_.push_back({binding.slots[slot].data, free, program_.slots[slot].elements});
    free += aligned(program_.slots[slot].elements);
  }
  return add_to;
}

void ShardRunner::add_aside() {
  for (const Aside& aside : aside_) add(DType::f32, aside.slot, aside.written, aside.slot, aside.elements);
}

void ShardRunner::scale_loss(std::int32_t node, const ShardBinding& binding) {
  const auto& elements = kernels_.loss_inputs(node);
  const bool on_gpu = lane_ != nullptr;
  LOCKSTEP_CHECK(!on_gpu || elements.empty() || kernels_.scales_loss() || binding.loss_scale == 1,
                 "a GPU scales the loss of float16 only");
  if (on_gpu ? !kernels_.scales_loss() : binding.loss_scale == 1) return;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    auto* const gradient = static_cast<float*>(input_gradients_[i]);
    if (gradient == nullptr) continue;
    if (on_gpu) {
      lane_->gpu.scale(lane_->compute, gradient, binding.loss_scale_of_kernels, elements[i]);
    } else {
      multiply(gradient, binding.loss_scale, elements[i]);
    }
  }
}

const std::string& ShardRunner::label(std::size_t instruction) const {
  const std::int32_t node = program_.instructions[instruction].node;
  return node < 0 ? kSum : kernels_.label(node);
}

void ShardRunner::run(std::size_t number, const ShardBinding& binding) {
  const Instruction& instruction = program_.instructions[number];
  bind(instruction.inputs, binding, inputs_);
  bind(instruction.outputs, binding, outputs_);
  const TraceRange range(ranges_, label(number));
  GpuStream* stream = nullptr;
  if (lane_ != nullptr) {
    stream = lane_->gpu.kernel_stream(lane_->compute);
    lane_->gpu.enter(lane_->compute, binding.step->step, label(number));
  }
  if (instruction.kind == Instruction::Kind::add) {
    const KernelTimer timer(kernel_seconds_);
    return add(instruction.dtype, inputs_[0], inputs_[1], outputs_[0], instruction.elements);
  }
  bind(instruction.parameters, binding, parameters_);
  bind(instruction.states, binding, states_);
  bind(instruction.saved, binding, saved_);
  void* workspace = pointer(instruction.workspace, binding);
  Kernel& kernel = *kernels_.at(instruction.node);
  if (instruction.kind == Instruction::Kind::forward || instruction.kind == Instruction::Kind::recompute) {
    bind(instruction.statistics, binding, statistics_);
    set_aside(instruction.statistics, binding, nullptr, statistics_);
    const KernelTimer timer(kernel_seconds_);
    const auto run = instruction.kind == Instruction::Kind::forward ? &Kernel::forward : &Kernel::recompute;
    (kernel.*run)({.inputs = constant(inputs_),
                   .parameters = constant(parameters_),
                   .states = constant(states_),
                   .statistics = floats(statistics_),
                   .outputs = outputs_,
                   .saved = saved_,
                   .workspace = workspace,
                   .step = binding.step_of_kernels,
                   .stream = stream});
    add_aside();
    return;
  }
  bind(instruction.output_gradients, binding, output_gradients_);
  bind(instruction.input_gradients, binding, input_gradients_);
  bind(instruction.parameter_gradients, binding, parameter_gradients_);
  const std::uint64_t add_to = set_aside(instruction.parameter_gradients, binding, &kernel, parameter_gradients_);
  const KernelTimer timer(kernel_seconds_);
  kernel.backward({.inputs = constant(inputs_),
                   .parameters = constant(parameters_),
                   .states = constant(states_),
                   .outputs = constant(outputs_),
                   .saved = constant(saved_),
                   .output_gradients = constant(output_gradients_),
                   .input_gradients = input_gradients_,
                   .parameter_gradients = floats(parameter_gradients_),
                   .add_to = add_to,
                   .workspace = workspace,
                   .step = binding.step_of_kernels,
                   .stream = stream});
  scale_loss(instruction.node, binding);
  add_aside();
}

const float* ShardRunner::result(const Location& location) const {
  if (location.space != Space::arena) return nullptr;
  return reinterpret_cast<const float*>(arena_ + location.index);
}

}  // namespace lockstep::exec
