#include "cuda/scripted_cuda.hpp"

#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "device/cuda/cuda_gpu.hpp"
#include "device/cuda/nvrtc.hpp"

namespace lockstep {

namespace {

ScriptedCuda script;

/// The scripted answer; a failure persists until it is queried, as in CUDA.
template <class Code>
Code answer(const char* name) {
  script.calls.emplace_back(name);
  const auto found = script.answers.find(name);
  const int code = found == script.answers.end() ? 0 : found->second;
  if (code != 0) script.last_error = code;
  return static_cast<Code>(code);
}

/// Objects are just numbers.
template <class Code, class Object>
Code make(const char* name, const char* kind, Object* object) {
  static std::uintptr_t next = 0x1000;
  const auto code = answer<Code>(name);
  if (code != Code{}) return code;
  *object = reinterpret_cast<Object>(next += 0x100);  // NOLINT(performance-no-int-to-ptr)
  ++script.alive[kind];
  return code;
}

template <class Code>
Code destroy(const char* name, const char* kind) {
  --script.alive[kind];
  return answer<Code>(name);
}

}  // namespace

ScriptedCuda& scripted_cuda() {
  return script;
}

void begin_script() {
  script = {};
}

}  // namespace lockstep

using lockstep::answer;
using lockstep::destroy;
using lockstep::make;
using lockstep::script;

extern "C" {

cudaError_t cudaSetDevice(int /*device*/) {
  return answer<cudaError_t>("cudaSetDevice");
}
cudaError_t cudaGetLastError() {
  script.calls.emplace_back("cudaGetLastError");
  return static_cast<cudaError_t>(std::exchange(script.last_error, 0));
}
const char* cudaGetErrorString(cudaError_t code) {
  return code == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "some error";
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (flags != cudaStreamNonBlocking) std::abort();
  return make<cudaError_t>("cudaStreamCreateWithFlags", "stream", stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t /*stream*/) {
  return destroy<cudaError_t>("cudaStreamDestroy", "stream");
}
cudaError_t cudaStreamWaitEvent(cudaStream_t /*stream*/, cudaEvent_t /*event*/, unsigned /*flags*/) {
  return answer<cudaError_t>("cudaStreamWaitEvent");
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (flags != cudaEventDisableTiming) std::abort();
  return make<cudaError_t>("cudaEventCreateWithFlags", "event", event);
}
cudaError_t cudaEventDestroy(cudaEvent_t /*event*/) {
  return destroy<cudaError_t>("cudaEventDestroy", "event");
}
cudaError_t cudaEventRecord(cudaEvent_t /*event*/, cudaStream_t /*stream*/) {
  return answer<cudaError_t>("cudaEventRecord");
}
cudaError_t cudaEventSynchronize(cudaEvent_t /*event*/) {
  return answer<cudaError_t>("cudaEventSynchronize");
}
cudaError_t cudaEventQuery(cudaEvent_t /*event*/) {
  return answer<cudaError_t>("cudaEventQuery");
}
cudaError_t cudaMalloc(void** memory, std::size_t /*bytes*/) {
  return make<cudaError_t>("cudaMalloc", "memory", memory);
}
cudaError_t cudaFree(void* /*memory*/) {
  return destroy<cudaError_t>("cudaFree", "memory");
}
cudaError_t cudaHostAlloc(void** memory, std::size_t /*bytes*/, unsigned /*flags*/) {
  return make<cudaError_t>("cudaHostAlloc", "pinned memory", memory);
}
cudaError_t cudaFreeHost(void* /*memory*/) {
  return destroy<cudaError_t>("cudaFreeHost", "pinned memory");
}
cudaError_t cudaMemcpyAsync(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/, cudaMemcpyKind /*kind*/,
                            cudaStream_t /*stream*/) {
  return answer<cudaError_t>("cudaMemcpyAsync");
}
cudaError_t cudaMemsetAsync(void* /*memory*/, int /*value*/, std::size_t /*bytes*/, cudaStream_t /*stream*/) {
  return answer<cudaError_t>("cudaMemsetAsync");
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = 1 << 20;
  return answer<cudaError_t>("cudaMemGetInfo");
}
cudaError_t cudaStreamBeginCapture(cudaStream_t /*stream*/, cudaStreamCaptureMode mode) {
  if (mode != cudaStreamCaptureModeThreadLocal) std::abort();
  return answer<cudaError_t>("cudaStreamBeginCapture");
}
cudaError_t cudaStreamEndCapture(cudaStream_t /*stream*/, cudaGraph_t* graph) {
  return make<cudaError_t>("cudaStreamEndCapture", "graph", graph);
}
cudaError_t cudaGraphDestroy(cudaGraph_t /*graph*/) {
  return destroy<cudaError_t>("cudaGraphDestroy", "graph");
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* runnable, cudaGraph_t /*graph*/, unsigned long long /*flags*/) {
  return make<cudaError_t>("cudaGraphInstantiate", "runnable graph", runnable);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t /*runnable*/, cudaStream_t /*stream*/) {
  return answer<cudaError_t>("cudaGraphLaunch");
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t /*runnable*/) {
  return destroy<cudaError_t>("cudaGraphExecDestroy", "runnable graph");
}

const char* cublasLtGetStatusString(cublasStatus_t /*code*/) {
  return "some status";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return make<cublasStatus_t>("cublasLtCreate", "handle", handle);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t /*handle*/) {
  return destroy<cublasStatus_t>("cublasLtDestroy", "handle");
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t /*type*/,
                                        cudaDataType_t /*of*/) {
  return make<cublasStatus_t>("cublasLtMatmulDescCreate", "descriptor", desc);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t /*desc*/) {
  return destroy<cublasStatus_t>("cublasLtMatmulDescDestroy", "descriptor");
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t /*desc*/, cublasLtMatmulDescAttributes_t /*which*/,
                                              const void* /*value*/, std::size_t /*bytes*/) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType /*type*/, std::uint64_t /*rows*/,
                                          std::uint64_t /*columns*/, std::int64_t /*step*/) {
  return make<cublasStatus_t>("cublasLtMatrixLayoutCreate", "layout", layout);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t /*layout*/) {
  return destroy<cublasStatus_t>("cublasLtMatrixLayoutDestroy", "layout");
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return make<cublasStatus_t>("cublasLtMatmulPreferenceCreate", "preference", preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t /*preference*/) {
  return destroy<cublasStatus_t>("cublasLtMatmulPreferenceDestroy", "preference");
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t /*preference*/,
                                                    cublasLtMatmulPreferenceAttributes_t /*which*/,
                                                    const void* /*value*/, std::size_t /*bytes*/) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t /*desc*/,
                                              cublasLtMatrixLayout_t /*a*/, cublasLtMatrixLayout_t /*b*/,
                                              cublasLtMatrixLayout_t /*c*/, cublasLtMatrixLayout_t /*d*/,
                                              cublasLtMatmulPreference_t /*preference*/, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  *count = std::min(wanted, static_cast<int>(script.proposed.size()));
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    results[i].algo.data[0] = static_cast<std::uint64_t>(i);
    results[i].workspaceSize = script.proposed[static_cast<std::size_t>(i)].workspace;
  }
  return script.proposes;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t /*desc*/,
                                       cublasLtMatrixLayout_t /*a*/, cublasLtMatrixLayout_t /*b*/,
                                       cublasLtMatrixLayout_t /*c*/, cublasLtMatrixLayout_t /*d*/,
                                       const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  const auto& one = script.proposed.at(algorithm->data[0]);
  result->workspaceSize = one.workspace;
  return one.taken ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t which, void* value,
                                                    std::size_t bytes, std::size_t* written) {
  const auto& one = script.proposed.at(algorithm->data[0]);
  const std::uint32_t of = which == CUBLASLT_ALGO_CONFIG_ID                 ? static_cast<std::uint32_t>(one.id)
                           : which == CUBLASLT_ALGO_CONFIG_SPLITK_NUM       ? static_cast<std::uint32_t>(one.split_k)
                           : which == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME ? one.reduction
                                                                            : 0;
  std::memcpy(value, &of, bytes);  // the low bytes come first
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t /*desc*/, const void* /*alpha*/,
                              const void* /*a*/, cublasLtMatrixLayout_t /*a_layout*/, const void* /*b*/,
                              cublasLtMatrixLayout_t /*b_layout*/, const void* /*beta*/, const void* /*c*/,
                              cublasLtMatrixLayout_t /*c_layout*/, void* /*d*/, cublasLtMatrixLayout_t /*d_layout*/,
                              const cublasLtMatmulAlgo_t* algorithm, void* /*workspace*/, std::size_t /*bytes*/,
                              cudaStream_t /*stream*/) {
  script.multiplied_by = script.proposed.at(algorithm->data[0]).id;
  return answer<cublasStatus_t>("cublasLtMatmul");
}

const char* cudnnGetErrorString(cudnnStatus_t /*code*/) {
  return "some status";
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return make<cudnnStatus_t>("cudnnCreate", "handle", handle);
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t /*handle*/) {
  return destroy<cudnnStatus_t>("cudnnDestroy", "handle");
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t /*handle*/, cudaStream_t /*stream*/) {
  return answer<cudnnStatus_t>("cudnnSetStream");
}

}  // extern "C"

namespace lockstep::device {

void open_nvrtc_builtins() {}

// Not tested here: kernels are left out.
void CudaGpu::add(Stream /*stream*/, DType /*dtype*/, const void* /*left*/, const void* /*right*/, void* /*out*/,
                  std::int64_t /*n*/) {}
void CudaGpu::cast(Stream /*stream*/, Cast /*cast*/, DType /*type*/, const void* /*from*/, void* /*to*/,
                   std::int64_t /*n*/) {}
void CudaGpu::scale(Stream /*stream*/, float* /*values*/, const float* /*factors*/, std::int64_t /*n*/,
                    std::int64_t /*columns*/) {}

}  // namespace lockstep::device
