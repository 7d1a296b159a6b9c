// libcudnn.so.9 for the interpreted GPU: cuDNN's backend, as its frontend calls it, for graphs of one convolution and
// what follows it (cudnn_convolution.hpp), and of attention (cudnn_attention.hpp). It proposes an engine of each kind,
// and those first that the module must not take: one whose sums have no order, one that wants too large a workspace.
// What cuDNN was found to have no engine for, this has none for either.
//
// INTERPRETED_LIBRARIES_LACK: "relu" behind a convolution, "convolutions": all, "attention", "attention_gradients".
#include <cudnn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "cuda/interpreter/cudnn_program.hpp"
#include "cuda/interpreter/library_objects.hpp"
#include "cuda/interpreter/library_proposals.hpp"

namespace lockstep::ptx {

namespace {

struct CudnnHandle {
  cudaStream_t stream = nullptr;
};

struct CudnnObjects {
  LibraryObjects<CudnnHandle> handles{"handles of cuDNN"};
  LibraryObjects<CudnnDescriptor> descriptors{"descriptors of cuDNN"};
};

CudnnObjects& cudnn() {
  static CudnnObjects one;
  return one;
}

std::string& last_cudnn_error() {
  thread_local std::string text;
  return text;
}

cudnnStatus_t cudnn_refused(cudnnStatus_t status, const std::string& why) {
  last_cudnn_error() = why;
  return status;
}

/// A call that the library answers by an error, or that isn't known here.
cudnnStatus_t cudnn_wrong(const std::string& what) {
  cudaInterpreterProblem("cuDNN: " + what);
  return cudnn_refused(CUDNN_STATUS_BAD_PARAM, what);
}

/// 0: none that is known.
std::size_t bytes_of_value(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_FLOAT:
    case CUDNN_TYPE_INT32:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_NAN_PROPOGATION:
    case CUDNN_TYPE_POINTWISE_MODE:
    case CUDNN_TYPE_REDUCTION_OPERATOR_TYPE:
    case CUDNN_TYPE_TENSOR_REORDERING_MODE:
      return 4;
    default:
      return 0;
  }
}

/// Descriptors of other kinds are of graphs that there is no engine for.
bool cudnn_knows(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
    case CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR:
    case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return true;
    default:
      return false;
  }
}

void cudnn_put(CudnnDescriptor& to, cudnnBackendAttributeName_t name, std::int64_t value) {
  CudnnDescriptor::Attribute attribute{CUDNN_TYPE_INT64, 1, std::vector<u8>(sizeof value), {}};
  std::memcpy(attribute.bytes.data(), &value, sizeof value);
  to.attributes[name] = std::move(attribute);
}
void cudnn_put(CudnnDescriptor& to, cudnnBackendAttributeName_t name, std::shared_ptr<CudnnDescriptor> value) {
  to.attributes[name] = {CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, {std::move(value)}};
}

CudnnEngine kind_of(const CudnnDescriptor& engine) {
  return static_cast<CudnnEngine>(value_of<std::int64_t>(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
}

std::shared_ptr<const CudnnProgram> program_of(const CudnnDescriptor& engine) {
  return CudnnProgram::of(*descriptor_of(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
}

/// Configurations of all engines for the graph, the best first. The fallback's mode has none beside them.
std::vector<std::shared_ptr<CudnnDescriptor>> configurations(const CudnnDescriptor& heuristics) {
  const auto graph = descriptor_of(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  std::vector<std::shared_ptr<CudnnDescriptor>> all;
  const auto program = CudnnProgram::of(*graph);
  if (const std::string why = program->refusal(); !why.empty()) {
    last_cudnn_error() = "no engine: " + why;
    return all;
  }
  for (const CudnnEngine engine : program->engines()) {
    auto of_engine = std::make_shared<CudnnDescriptor>(CudnnDescriptor{CUDNN_BACKEND_ENGINE_DESCRIPTOR, true, {}});
    cudnn_put(*of_engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
    cudnn_put(*of_engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, static_cast<std::int64_t>(engine));
    auto configuration =
        std::make_shared<CudnnDescriptor>(CudnnDescriptor{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, true, {}});
    cudnn_put(*configuration, CUDNN_ATTR_ENGINECFG_ENGINE, std::move(of_engine));
    cudnn_put(*configuration, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, program->workspace_bytes(engine));
    all.push_back(std::move(configuration));
  }
  if (proposes_in_another_order({program->samples()})) std::ranges::reverse(all);
  return all;
}

/// Where the caller's list has no room, or is null, only the number is said.
template <class Value>
cudnnStatus_t give(const std::vector<Value>& values, std::int64_t room, std::int64_t* count, void* to) {
  if (count != nullptr) *count = static_cast<std::int64_t>(values.size());
  const std::size_t given = std::min(values.size(), static_cast<std::size_t>(room));
  if (to != nullptr && given > 0) std::memcpy(to, values.data(), given * sizeof(Value));
  return CUDNN_STATUS_SUCCESS;
}

/// What the caller's descriptors become copies of.
cudnnStatus_t give(const std::vector<std::shared_ptr<CudnnDescriptor>>& values, std::int64_t room, std::int64_t* count,
                   void* to) {
  if (count != nullptr) *count = static_cast<std::int64_t>(values.size());
  for (std::size_t i = 0; to != nullptr && i < std::min(values.size(), static_cast<std::size_t>(room)); ++i) {
    const auto into = cudnn().descriptors.find(static_cast<void**>(to)[i], "cudnnBackendGetAttribute");
    if (into == nullptr) return CUDNN_STATUS_BAD_PARAM;
    if (into->type != values[i]->type) return cudnn_wrong("a descriptor of another type for an attribute");
    *into = *values[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

std::shared_ptr<CudnnDescriptor> engine_of(const CudnnDescriptor& plan) {
  return descriptor_of(*descriptor_of(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG), CUDNN_ATTR_ENGINECFG_ENGINE);
}

cudnnStatus_t cudnn_get(const CudnnDescriptor& of, cudnnBackendAttributeName_t name, std::int64_t room,
                        std::int64_t* count, void* to) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      return give(configurations(of), room, count, to);
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
      return give(std::vector{static_cast<std::int64_t>(CudnnProgram::of(of)->engines().size())}, room, count, to);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return give(program_of(of)->notes(kind_of(of)), room, count, to);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
      return give(std::vector<std::int64_t>(), room, count, to);
    case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
      return give(std::vector<std::int32_t>{0}, room, count, to);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
      const auto engine = engine_of(of);
      return give(std::vector{program_of(*engine)->workspace_bytes(kind_of(*engine))}, room, count, to);
    }
    default:
      break;
  }
  const auto found = of.attributes.find(name);
  if (found == of.attributes.end()) return cudnn_wrong(fmt::format("attribute {} isn't known", static_cast<int>(name)));
  const auto& attribute = found->second;
  if (attribute.type == CUDNN_TYPE_BACKEND_DESCRIPTOR) return give(attribute.of, room, count, to);
  if (count != nullptr) *count = attribute.count;
  if (to != nullptr && room >= attribute.count) std::memcpy(to, attribute.bytes.data(), attribute.bytes.size());
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_execute(const CudnnHandle& handle, const CudnnDescriptor& plan, const CudnnDescriptor& pack) {
  const auto of_plan = engine_of(plan);
  const auto program = program_of(*of_plan);
  const CudnnEngine engine = kind_of(*of_plan);
  const auto uids = values_of<std::int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = values_of<void*>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (uids.size() != pointers.size()) return cudnn_wrong("another number of pointers than of tensors");
  CudnnOperands operands{.workspace = value_of<void*>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)};
  for (std::size_t i = 0; i < uids.size(); ++i) operands.memory[uids[i]] = pointers[i];
  for (const auto& [uid, tensor] : program->tensors()) {
    if (tensor.is_virtual) continue;
    const auto found = operands.memory.find(uid);
    if (found == operands.memory.end() || found->second == nullptr) {
      return cudnn_wrong(fmt::format("tensor {} is nowhere", uid));
    }
    if (tensor.is_by_value) {
      std::memcpy(&operands.values[uid], found->second, sizeof(float));
    } else if (reinterpret_cast<std::uintptr_t>(found->second) % static_cast<std::uintptr_t>(tensor.alignment) != 0) {
      return cudnn_wrong(fmt::format("tensor {} is aligned less than was said", uid));
    }
  }
  if (program->workspace_bytes(engine) > 0 && operands.workspace == nullptr) return cudnn_wrong("no workspace");
  const auto enqueued =
      cudaInterpreterLaunch(handle.stream, "cudnnBackendExecute", program->kernel(engine, std::move(operands)));
  return enqueued == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

/// A graph, or an attribute, that isn't known is said; it is no exception to C.
template <class Function>
cudnnStatus_t cudnn_guarded(const Function& function) {
  try {
    return function();
  } catch (const std::exception& error) {
    return cudnn_wrong(error.what());
  }
}

}  // namespace

}  // namespace lockstep::ptx

using lockstep::ptx::cudnn;
using lockstep::ptx::cudnn_refused;
using lockstep::ptx::CudnnDescriptor;

#define LOCKSTEP_CUDNN const std::lock_guard lock(cudaInterpreterMutex())

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  LOCKSTEP_CUDNN;
  *handle = static_cast<cudnnHandle_t>(cudnn().handles.add(std::make_shared<lockstep::ptx::CudnnHandle>()));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  LOCKSTEP_CUDNN;
  return cudnn().handles.remove(handle, "cudnnDestroy") ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  LOCKSTEP_CUDNN;
  const auto found = cudnn().handles.find(handle, "cudnnSetStream");
  if (found == nullptr) return CUDNN_STATUS_BAD_PARAM;
  found->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  LOCKSTEP_CUDNN;
  const auto found = cudnn().handles.find(handle, "cudnnGetStream");
  if (found == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *stream = found->stream;
  return CUDNN_STATUS_SUCCESS;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    default:
      return "a status of cuDNN";
  }
}
void cudnnGetLastErrorString(char* text, std::size_t room) {
  if (room == 0) return;
  const std::string& said = lockstep::ptx::last_cudnn_error();
  text[said.copy(text, room - 1)] = '\0';
}
std::size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  LOCKSTEP_CUDNN;
  *descriptor = nullptr;
  if (!lockstep::ptx::cudnn_knows(type)) return cudnn_refused(CUDNN_STATUS_NOT_SUPPORTED, "no engine for such a graph");
  *descriptor = cudnn().descriptors.add(std::make_shared<CudnnDescriptor>(CudnnDescriptor{type, false, {}}));
  return CUDNN_STATUS_SUCCESS;
}
/// The frontend goes on with a descriptor that it wasn't given, here and below, and wants to be refused.
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  LOCKSTEP_CUDNN;
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const bool was = cudnn().descriptors.remove(descriptor, "cudnnBackendDestroyDescriptor");
  return was ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  LOCKSTEP_CUDNN;
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const auto found = cudnn().descriptors.find(descriptor, "cudnnBackendSetAttribute");
  if (found == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (found->finalized) return cudnn_refused(CUDNN_STATUS_NOT_INITIALIZED, "an attribute of what is finalized");
  const std::size_t bytes = lockstep::ptx::bytes_of_value(type);
  if (bytes == 0 || count < 0) {
    return lockstep::ptx::cudnn_wrong(
        fmt::format("type {} of attribute {} isn't known", static_cast<int>(type), static_cast<int>(name)));
  }
  CudnnDescriptor::Attribute attribute{type, count, {}, {}};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (std::int64_t i = 0; i < count; ++i) {
      const void* const one = static_cast<void* const*>(values)[i];
      const auto of = cudnn().descriptors.find(one, "cudnnBackendSetAttribute");
      if (of == nullptr) return CUDNN_STATUS_BAD_PARAM;
      if (!of->finalized) return lockstep::ptx::cudnn_wrong("an attribute that is not finalized");
      attribute.of.push_back(of);
    }
  } else {
    const auto* const from = static_cast<const lockstep::ptx::u8*>(values);
    attribute.bytes.assign(from, from + static_cast<std::size_t>(count) * bytes);
  }
  found->attributes[name] = std::move(attribute);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t /*type*/, std::int64_t room, std::int64_t* count,
                                       void* values) {
  LOCKSTEP_CUDNN;
  const auto found = cudnn().descriptors.find(descriptor, "cudnnBackendGetAttribute");
  if (found == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (!found->finalized) return cudnn_refused(CUDNN_STATUS_NOT_INITIALIZED, "an attribute of what isn't finalized");
  return lockstep::ptx::cudnn_guarded([&] { return lockstep::ptx::cudnn_get(*found, name, room, count, values); });
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  LOCKSTEP_CUDNN;
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const auto found = cudnn().descriptors.find(descriptor, "cudnnBackendFinalize");
  if (found == nullptr) return CUDNN_STATUS_BAD_PARAM;
  found->finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  LOCKSTEP_CUDNN;
  const auto of = cudnn().handles.find(handle, "cudnnBackendExecute");
  const auto what = cudnn().descriptors.find(plan, "cudnnBackendExecute");
  const auto with = cudnn().descriptors.find(pack, "cudnnBackendExecute");
  if (of == nullptr || what == nullptr || with == nullptr) return CUDNN_STATUS_BAD_PARAM;
  return lockstep::ptx::cudnn_guarded([&] { return lockstep::ptx::cudnn_execute(*of, *what, *with); });
}

}  // extern "C"
