#include "ops/op_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/low_precision.hpp"
#include "device/threads.hpp"
#include "lockstep/error.hpp"
#include "lockstep/random.hpp"

namespace lockstep::ops {

namespace {

constexpr std::size_t kGuard = 64;
constexpr std::byte kGuardByte{0xA5};

void fill_random(Tensor& tensor, RandomStream random, float low, float high, std::int64_t integer_bound) {
  const auto bound = static_cast<std::uint32_t>(std::max<std::int64_t>(integer_bound, 1));
  switch (tensor.dtype()) {
    case DType::f32:
      for (float& value : tensor.as<float>()) value = random.between(low, high);
      return;
    case DType::i32:
      for (auto& value : tensor.as<std::int32_t>()) value = static_cast<std::int32_t>(random.below(bound));
      return;
    case DType::i64:
      for (auto& value : tensor.as<std::int64_t>()) value = random.below(bound);
      return;
    case DType::u8:
      for (auto& value : tensor.as<std::uint8_t>()) value = static_cast<std::uint8_t>(random.below(bound));
      return;
    default:
      LOCKSTEP_CHECK(false, "the op driver cannot fill this dtype");
  }
}

template <class T>
void convert(const std::byte* bytes, std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
}

DoubleTensor convert(const std::byte* bytes, const TensorSpec& spec) {
  DoubleTensor result{spec.shape, std::vector<double>(static_cast<std::size_t>(spec.elements()))};
  switch (spec.dtype) {
    case DType::f32:
      convert<float>(bytes, result.values);
      break;
    case DType::f64:
      convert<double>(bytes, result.values);
      break;
    case DType::i32:
      convert<std::int32_t>(bytes, result.values);
      break;
    case DType::i64:
      convert<std::int64_t>(bytes, result.values);
      break;
    case DType::u8:
      convert<std::uint8_t>(bytes, result.values);
      break;
    case DType::bf16:
    case DType::f16: {
      std::vector<float> wide(result.values.size());
      upcast(spec.dtype, reinterpret_cast<const std::uint16_t*>(bytes), wide.data(), spec.elements());
      result.values.assign(wide.begin(), wide.end());
      break;
    }
    default:
      LOCKSTEP_CHECK(false, "the op driver cannot read this dtype");
  }
  return result;
}

template <class Pointer>
std::vector<Pointer> pointers(const std::vector<GuardedBuffer>& buffers) {
  std::vector<Pointer> list;
  for (const auto& buffer : buffers) list.push_back(static_cast<Pointer>(static_cast<void*>(buffer.data())));
  return list;
}

}  // namespace

std::vector<std::string> epilogues_of(const OpDef& op, DeviceKind device) {
  std::vector<std::string> list = {""};
  if (const auto found = op.epilogues.find(device); found != op.epilogues.end()) {
    list.insert(list.end(), found->second.begin(), found->second.end());
  }
  return list;
}

bool Problem::makes_gradient(std::size_t input) const {
  return wants_gradient(input) && (input == 0 || epilogue.empty() || !op->passes_gradient);
}

bool Problem::wants_gradient(std::size_t input) const {
  const auto& constant = op->constant_inputs;
  const DType dtype = input_specs[input].dtype;
  return (dtype == DType::f32 || is_low_precision(dtype)) &&
         std::find(constant.begin(), constant.end(), static_cast<int>(input)) == constant.end();
}

std::unique_ptr<Kernel> Problem::make_kernel() const {
  return make_kernel(op->kernels.at(DeviceKind::cpu));
}

std::unique_ptr<Kernel> Problem::make_kernel(const KernelFactory& factory) const {
  device::use_one_thread();
  KernelRequest request{op->name, &attributes, mode, input_specs, {}, {}, signature.outputs, signature.saved, epilogue};
  for (const auto& parameter : signature.parameters) request.parameters.push_back({DType::f32, parameter.shape});
  for (const auto& state : signature.states) request.states.push_back({DType::f32, state.shape});
  return factory(request);
}

Problem make_problem(const OpDef& op, const OpCase& the_case, bool empty_batch) {
  Problem problem;
  problem.op = &op;
  problem.mode = the_case.mode;
  problem.input_specs = the_case.inputs;
  problem.attributes = complete(op.attributes, the_case.attributes, "op '" + op.name + "'");
  if (empty_batch) {
    for (auto& spec : problem.input_specs) spec.shape.at(0) = 0;
  }
  problem.signature = op.infer(problem.attributes, problem.input_specs);
  problem.step = {.seed = 17, .step = 5, .first_position = 48, .parameters_version = 1};

  const std::uint64_t key = hash_name(op.name + "." + the_case.name);
  std::uint64_t stream = 0;
  for (std::size_t i = 0; i < problem.input_specs.size(); ++i) {
    Tensor& tensor = problem.inputs.emplace_back(problem.input_specs[i]);
    fill_random(tensor, {key, stream++}, -1, 1, the_case.integer_bound);
    if (the_case.fill && tensor.elements() > 0) the_case.fill(static_cast<int>(i), tensor);
  }
  for (const auto& parameter : problem.signature.parameters) {
    fill_random(problem.parameters.emplace_back(TensorSpec{DType::f32, parameter.shape}), {key, stream++}, -1, 1, 0);
  }
  for (const auto& state : problem.signature.states) {  // positive: they may be variances
    fill_random(problem.states.emplace_back(TensorSpec{DType::f32, state.shape}), {key, stream++}, 0.1F, 1.1F, 0);
  }
  if (op.kind == OpKind::layer || op.kind == OpKind::fused || op.kind == OpKind::sum) {
    fill_random(problem.output_gradients.emplace_back(problem.signature.outputs[0]), {key, stream++}, -1, 1, 1);
  }
  return problem;
}

GuardedBuffer::GuardedBuffer(std::size_t bytes, std::size_t shift, std::byte junk_byte)
    : block_(bytes + 2 * kGuard + 64 * shift), data_(block_.data() + kGuard + 64 * shift), size_(bytes) {
  std::fill(block_.data(), block_.data() + block_.size(), kGuardByte);
  junk(junk_byte);
}

void GuardedBuffer::junk(std::byte junk) {
  std::fill_n(data_, size_, junk);
}

bool GuardedBuffer::intact() const {
  const auto is_guard = [](std::byte byte) { return byte == kGuardByte; };
  return std::all_of(block_.data(), data_, is_guard) &&
         std::all_of(data_ + size_, block_.data() + block_.size(), is_guard);
}

bool GuardedBuffer::untouched(std::byte junk) const {
  return std::all_of(data_, data_ + size_, [junk](std::byte byte) { return byte == junk; });
}

KernelRun::KernelRun(const Problem& problem, RunOptions options) : problem_(problem), options_(std::move(options)) {
  inputs_ = make(problem.inputs);
  parameters_ = make(problem.parameters);
  states_ = make(problem.states);
  output_gradients_ = make(problem.output_gradients);

  std::vector<std::size_t> outputs, saved, statistics, input_gradients, parameter_gradients;
  for (const auto& spec : problem.signature.outputs) outputs.push_back(spec.bytes());
  for (const auto& spec : problem.signature.saved) saved.push_back(spec.bytes());
  for (const auto& tensor : problem.states) statistics.push_back(tensor.spec().bytes());
  for (const auto& spec : problem.input_specs) input_gradients.push_back(spec.bytes());
  for (const auto& tensor : problem.parameters) {
    parameter_gradients.push_back(static_cast<std::size_t>(tensor.elements()) * sizeof(float));
  }
  outputs_ = make(outputs);
  saved_ = make(saved);
  if (problem.mode == Mode::training) statistics_ = make(statistics);
  input_gradients_ = make(input_gradients);
  parameter_gradients_ = make(parameter_gradients);
}

KernelRun::Buffers KernelRun::make(const std::vector<Tensor>& tensors) {
  Buffers buffers;
  for (const auto& tensor : tensors) {
    const std::size_t shift = options_.shift == 0 ? 0 : options_.shift + made_++ % 3;
    buffers.emplace_back(tensor.spec().bytes(), shift, options_.junk);
    std::copy_n(tensor.bytes(), tensor.spec().bytes(), buffers.back().data());
  }
  return buffers;
}

KernelRun::Buffers KernelRun::make(const std::vector<std::size_t>& sizes) {
  Buffers buffers;
  for (const auto size : sizes) {
    const std::size_t shift = options_.shift == 0 ? 0 : options_.shift + made_++ % 3;
    buffers.emplace_back(size, shift, options_.junk);
  }
  return buffers;
}

void KernelRun::prepare(Kernel& kernel) {
  if (workspace_.empty()) {
    workspace_ = make(std::vector<std::size_t>{kernel.workspace_bytes()});
  } else {
    workspace_[0].junk(options_.junk);
  }
}

bool KernelRun::wanted(std::size_t input) const {
  return problem_.wants_gradient(input) && (options_.want_inputs.empty() || options_.want_inputs[input]);
}

void KernelRun::move(const GuardedBuffer& operand, const GuardedBuffer& over, const void*& pointer) {
  std::copy_n(operand.data(), operand.size(), over.data());
  pointer = over.data();
}

void KernelRun::forward(Kernel& kernel, Over over) {
  prepare(kernel);
  auto inputs = pointers<const void*>(inputs_);
  if (over == Over::first_input) move(inputs_[0], outputs_[0], inputs[0]);
  if (over == Over::second_input) move(inputs_[1], outputs_[0], inputs[1]);
  const auto parameters = pointers<const void*>(parameters_);
  const auto states = pointers<const void*>(states_);
  const auto statistics = pointers<float*>(statistics_);
  const auto outputs = pointers<void*>(outputs_), saved = pointers<void*>(saved_);
  kernel.forward(
      {inputs, parameters, states, statistics, outputs, saved, workspace_[0].data(), &problem_.step, options_.stream});
}

void KernelRun::recompute(Kernel& kernel) {
  prepare(kernel);
  outputs_[0].junk(options_.junk);
  const auto inputs = pointers<const void*>(inputs_), parameters = pointers<const void*>(parameters_);
  const auto states = pointers<const void*>(states_);
  auto outputs = pointers<void*>(outputs_);
  std::fill(outputs.begin() + 1, outputs.end(), nullptr);
  const auto saved = pointers<void*>(saved_);
  kernel.recompute(
      {inputs, parameters, states, {}, outputs, saved, workspace_[0].data(), &problem_.step, options_.stream});
}

void KernelRun::set_outputs(const std::vector<Bytes>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i)
    std::copy_n(outputs[i].data(), outputs_[i].size(), outputs_[i].data());
}

void KernelRun::backward(Kernel& kernel, Over over) {
  prepare(kernel);
  auto inputs = pointers<const void*>(inputs_), outputs = pointers<const void*>(outputs_);
  if (!problem_.op->backward_reads.inputs) std::fill(inputs.begin(), inputs.end(), nullptr);
  if (!problem_.op->backward_reads.outputs && problem_.epilogue.empty())
    std::fill(outputs.begin(), outputs.end(), nullptr);
  const auto parameters = pointers<const void*>(parameters_), states = pointers<const void*>(states_);
  const auto saved = pointers<const void*>(saved_);
  auto output_gradients = pointers<const void*>(output_gradients_);
  if (over == Over::first_input) move(inputs_[0], input_gradients_[0], inputs[0]);
  if (over == Over::gradient) move(output_gradients_[0], input_gradients_[0], output_gradients[0]);
  auto input_gradients = pointers<void*>(input_gradients_);
  for (std::size_t i = 0; i < input_gradients.size(); ++i) {
    if (!wanted(i)) input_gradients[i] = nullptr;
  }
  auto parameter_gradients = pointers<float*>(parameter_gradients_);
  for (std::size_t i = 0; i < options_.want_parameters.size(); ++i) {
    if (!options_.want_parameters[i]) parameter_gradients[i] = nullptr;
  }
  const bool of_output = !problem_.epilogue.empty();
  kernel.backward({inputs, parameters, states, outputs, saved, output_gradients, input_gradients, parameter_gradients,
                   options_.add_to, workspace_[0].data(), &problem_.step, options_.stream,
                   options_.second_term && !of_output ? inputs_[0].data() : nullptr,
                   options_.second_term && of_output ? outputs_[0].data() : nullptr});
}

std::string KernelRun::damage() const {
  const auto guards = [](const char* what, const Buffers& buffers) -> std::string {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (!buffers[i].intact()) return fmt::format("wrote outside of {} {}", what, i);
    }
    return "";
  };
  const auto constant = [](const char* what, const Buffers& buffers,
                           const std::vector<Tensor>& tensors) -> std::string {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (!std::equal(tensors[i].bytes(), tensors[i].bytes() + buffers[i].size(), buffers[i].data())) {
        return fmt::format("changed {} {}", what, i);
      }
    }
    return "";
  };
  std::vector<std::string> found = {guards("input", inputs_),
                                    guards("parameter", parameters_),
                                    guards("state", states_),
                                    guards("output gradient", output_gradients_),
                                    guards("output", outputs_),
                                    guards("saved", saved_),
                                    guards("statistic", statistics_),
                                    guards("input gradient", input_gradients_),
                                    guards("parameter gradient", parameter_gradients_),
                                    guards("workspace", workspace_),
                                    constant("input", inputs_, problem_.inputs),
                                    constant("parameter", parameters_, problem_.parameters),
                                    constant("state", states_, problem_.states),
                                    constant("output gradient", output_gradients_, problem_.output_gradients)};
  for (std::size_t i = 0; i < input_gradients_.size(); ++i) {
    if (!wanted(i) && !input_gradients_[i].untouched(options_.junk)) {
      found.push_back(fmt::format("wrote the gradient of input {}, which was not wanted", i));
    }
  }
  const auto first = std::find_if(found.begin(), found.end(), [](const auto& text) { return !text.empty(); });
  return first == found.end() ? "" : *first;
}

std::vector<KernelRun::Bytes> KernelRun::copy(const Buffers& buffers) {
  std::vector<Bytes> list;
  for (const auto& buffer : buffers) list.emplace_back(buffer.data(), buffer.data() + buffer.size());
  return list;
}

DoubleTensor to_doubles(const Tensor& tensor) {
  return convert(tensor.bytes(), tensor.spec());
}

DoubleTensor to_doubles(const std::vector<std::byte>& bytes, const TensorSpec& spec) {
  return convert(bytes.data(), spec);
}

}  // namespace lockstep::ops
