// libcublasLt.so.13 for the interpreted GPU: computes what it is asked for (lt_kernel.hpp), and refuses what the
// library's documentation says that it refuses ("cublasLtMatmul()", and the comments of cublasLt.h):
//
//   - types but fp32, bf16 and fp16 of both factors, with a result of theirs or in fp32, added in fp32; TF32 of fp32
//   only
//   - a bias of another type than the result's
//   - gelu's input with a stride that isn't a multiple of 8, or less than the result's rows
//   - an algorithm of another problem; memory less aligned than its preference said; a workspace that is too small
//
// Which of its two error codes says that there is no algorithm for a configuration, the documentation leaves open: of a
// bias in bf16 it is the one, in fp16 the other. What the module doesn't ask for isn't known, and named by a problem.
//
// INTERPRETED_LIBRARIES_LACK: "bias", "gelu", "gelu_gradient", "sums" (of b), "products": all.
#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "cuda/interpreter/library_objects.hpp"
#include "cuda/interpreter/library_proposals.hpp"
#include "cuda/interpreter/lt_kernel.hpp"

namespace lockstep::ptx {

namespace {

constexpr std::size_t kWorkspaceAlignment = 256;

struct LtHandle {};

struct LtDesc {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *vector = nullptr, *aux = nullptr;
  std::int32_t vector_type = -1;
  std::int64_t aux_step = 0;
};

struct LtLayout {
  cudaDataType type = CUDA_R_32F;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t step = 0;
};

struct LtPreference {
  std::uint64_t max_workspace = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t a = 256, b = 256, c = 256, d = 256;  ///< alignments
};

struct LtObjects {
  LibraryObjects<LtHandle> handles{"handles of cuBLASLt"};
  LibraryObjects<LtDesc> descs{"descriptors of cuBLASLt"};
  LibraryObjects<LtLayout> layouts{"layouts of cuBLASLt"};
  LibraryObjects<LtPreference> preferences{"preferences of cuBLASLt"};
};

LtObjects& objects() {
  static LtObjects one;
  return one;
}

template <class Object, class Handle, class... Values>
cublasStatus_t lt_create(LibraryObjects<Object>& in, Handle* handle, Values... values) {
  *handle = static_cast<Handle>(in.add(std::make_shared<Object>(Object{values...})));
  return CUBLAS_STATUS_SUCCESS;
}

template <class Object>
cublasStatus_t lt_destroy(LibraryObjects<Object>& in, const void* handle, const char* call) {
  return in.remove(handle, call) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

/// A value of another size is refused, as the library does.
template <class Value>
cublasStatus_t lt_set(Value& to, const void* from, std::size_t bytes) {
  if (from == nullptr || bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, sizeof to);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t lt_unknown(const std::string& what) {
  cudaInterpreterProblem(fmt::format("cuBLASLt: {} isn't known", what));
  return CUBLAS_STATUS_INVALID_VALUE;
}

std::optional<Element> lt_element(std::int32_t type) {
  if (type == CUDA_R_32F) return Element::fp32;
  if (type == CUDA_R_16BF) return Element::bf16;
  if (type == CUDA_R_16F) return Element::fp16;
  return std::nullopt;
}

/// What the descriptors say, as far as they fit.
struct LtAsked {
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  LtProblem problem;
};

LtMatrix matrix_of(const LtLayout& layout, Element element) {
  return {element, static_cast<std::int64_t>(layout.rows), static_cast<std::int64_t>(layout.columns), layout.step};
}

bool sizes_fit(const LtProblem& p) {
  const std::int64_t m = p.a_transposed ? p.a.columns : p.a.rows, n = p.b_transposed ? p.b.rows : p.b.columns;
  const std::int64_t k_of_b = p.b_transposed ? p.b.columns : p.b.rows;
  const auto holds = [](const LtMatrix& one) { return one.rows > 0 && one.columns > 0 && one.step >= one.rows; };
  return p.d.rows == m && p.d.columns == n && p.k() == k_of_b && holds(p.a) && holds(p.b) && holds(p.d);
}

/// Of what the descriptors say; the last word on whether there is an algorithm.
cublasStatus_t lt_has(const LtProblem& p) {
  if (p.a.element != p.b.element) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p.d.element != p.a.element && p.d.element != Element::fp32) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p.tf32 && p.a.element != Element::fp32) return CUBLAS_STATUS_NOT_SUPPORTED;
  if ((p.adds_bias() || p.sums_b()) && p.vector != p.d.element) {
    return p.d.element == Element::bf16 ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (p.has_aux() && (p.aux_step % 8 != 0 || p.aux_step < p.d.rows)) return CUBLAS_STATUS_INVALID_VALUE;
  const bool lacks = library_lacks("products") || (p.adds_bias() && library_lacks("bias")) ||
                     (p.takes_gelu() && library_lacks("gelu")) || (p.sums_b() && library_lacks("sums")) ||
                     (p.takes_gelu_gradient() && library_lacks("gelu_gradient"));
  return lacks ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

bool is_known_epilogue(cublasLtEpilogue_t epilogue) {
  constexpr std::array kKnown = {CUBLASLT_EPILOGUE_DEFAULT,       CUBLASLT_EPILOGUE_BIAS,  CUBLASLT_EPILOGUE_GELU_AUX,
                                 CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_BGRADB};
  return std::ranges::find(kKnown, epilogue) != kKnown.end();
}

LtAsked lt_asked(const char* call, cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                 cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  const auto of = objects().descs.find(desc, call);
  const auto in_a = objects().layouts.find(a, call), in_b = objects().layouts.find(b, call);
  const auto in_c = objects().layouts.find(c, call), out = objects().layouts.find(d, call);
  if (objects().handles.find(handle, call) == nullptr || !of || !in_a || !in_b || !in_c || !out) {
    return {CUBLAS_STATUS_INVALID_VALUE, {}};
  }
  if (in_c != out) return {lt_unknown("another layout of c than of d"), {}};
  if (!is_known_epilogue(of->epilogue)) return {lt_unknown(fmt::format("epilogue {}", of->epilogue)), {}};
  const auto of_a = lt_element(in_a->type), of_b = lt_element(in_b->type), of_d = lt_element(out->type);
  if (!of_a || !of_b || !of_d) return {CUBLAS_STATUS_NOT_SUPPORTED, {}};
  LtProblem p{.a = matrix_of(*in_a, *of_a),
              .b = matrix_of(*in_b, *of_b),
              .d = matrix_of(*out, *of_d),
              .a_transposed = of->a == CUBLAS_OP_T,
              .b_transposed = of->b == CUBLAS_OP_T,
              .tf32 = of->compute == CUBLAS_COMPUTE_32F_FAST_TF32,
              .epilogue = of->epilogue,
              .aux_step = of->aux_step};
  // Without a type of its own a vector has the result's.
  const auto of_vector = of->vector_type < 0 ? of_d : lt_element(of->vector_type);
  if (!of_vector) return {CUBLAS_STATUS_NOT_SUPPORTED, {}};
  p.vector = *of_vector;
  if (!sizes_fit(p)) return {CUBLAS_STATUS_INVALID_VALUE, {}};
  if ((p.adds_bias() || p.sums_b()) && of->vector == nullptr) return {CUBLAS_STATUS_INVALID_VALUE, {}};
  if (p.has_aux() && of->aux == nullptr) return {CUBLAS_STATUS_INVALID_VALUE, {}};
  return {lt_has(p), p};
}

/// Of a problem, so that its algorithm isn't taken for another one's.
std::uint64_t fingerprint(const LtProblem& problem, std::uint64_t alignment) {
  std::uint64_t hash = 14695981039346656037U ^ alignment;
  for (const char letter : problem.text()) hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211U;
  return hash;
}

// What is in an algorithm: which it is, of which problem, and how memory must be aligned for it.
struct LtChosen {
  std::uint64_t algorithm = 0, problem = 0, alignment = 0;
};

LtChosen chosen_of(const cublasLtMatmulAlgo_t& algorithm) {
  LtChosen chosen;
  std::memcpy(&chosen, algorithm.data, sizeof chosen);
  return chosen;
}

bool is_of(const LtChosen& chosen, const LtProblem& problem) {
  return (chosen.algorithm == static_cast<std::uint64_t>(LtAlgorithm::plain) ||
          chosen.algorithm == static_cast<std::uint64_t>(LtAlgorithm::in_parts)) &&
         chosen.problem == fingerprint(problem, chosen.alignment);
}

bool is_aligned(const void* address, std::uint64_t to) {
  return reinterpret_cast<std::uintptr_t>(address) % to == 0;
}

/// A call that the library answers by an error, or that it leaves open what it does.
cublasStatus_t lt_wrong(const std::string& what) {
  cudaInterpreterProblem("cublasLtMatmul: " + what);
  return CUBLAS_STATUS_INVALID_VALUE;
}

}  // namespace

}  // namespace lockstep::ptx

using lockstep::ptx::lt_asked;
using lockstep::ptx::lt_set;
using lockstep::ptx::LtAlgorithm;
using lockstep::ptx::objects;

#define LOCKSTEP_LT const std::lock_guard lock(cudaInterpreterMutex())

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  LOCKSTEP_LT;
  return lockstep::ptx::lt_create(objects().handles, handle);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  LOCKSTEP_LT;
  return lockstep::ptx::lt_destroy(objects().handles, handle, "cublasLtDestroy");
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
      return "a status of cuBLASLt";
  }
}
std::size_t cublasLtGetVersion() {
  return CUBLAS_VERSION;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
  LOCKSTEP_LT;
  if ((compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32) || scale != CUDA_R_32F) {
    return lockstep::ptx::lt_unknown(fmt::format("compute type {}, scale {}", static_cast<int>(compute), scale));
  }
  return lockstep::ptx::lt_create(objects().descs, desc, compute);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  LOCKSTEP_LT;
  return lockstep::ptx::lt_destroy(objects().descs, desc, "cublasLtMatmulDescDestroy");
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  LOCKSTEP_LT;
  const auto found = objects().descs.find(desc, "cublasLtMatmulDescSetAttribute");
  if (found == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return lt_set(found->a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return lt_set(found->b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return lt_set(found->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return lt_set(found->vector, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return lt_set(found->vector_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return lt_set(found->aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return lt_set(found->aux_step, value, bytes);
    default:
      return lockstep::ptx::lt_unknown(fmt::format("attribute {} of a product", static_cast<int>(attribute)));
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t step) {
  LOCKSTEP_LT;
  return lockstep::ptx::lt_create(objects().layouts, layout, type, rows, columns, step);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  LOCKSTEP_LT;
  return lockstep::ptx::lt_destroy(objects().layouts, layout, "cublasLtMatrixLayoutDestroy");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  LOCKSTEP_LT;
  return lockstep::ptx::lt_create(objects().preferences, preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  LOCKSTEP_LT;
  return lockstep::ptx::lt_destroy(objects().preferences, preference, "cublasLtMatmulPreferenceDestroy");
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  LOCKSTEP_LT;
  const auto found = objects().preferences.find(preference, "cublasLtMatmulPreferenceSetAttribute");
  if (found == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return lt_set(found->max_workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return lt_set(found->reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return lt_set(found->a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return lt_set(found->b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return lt_set(found->c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return lt_set(found->d, value, bytes);
    default:
      return lockstep::ptx::lt_unknown(fmt::format("preference {}", static_cast<int>(attribute)));
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  LOCKSTEP_LT;
  *count = 0;
  const auto preferred = objects().preferences.find(preference, "cublasLtMatmulAlgoGetHeuristic");
  if (preferred == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const auto [status, problem] = lt_asked("cublasLtMatmulAlgoGetHeuristic", handle, desc, a, b, c, d);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  std::array order = {LtAlgorithm::in_parts, LtAlgorithm::plain};
  if (lockstep::ptx::proposes_in_another_order({problem.d.rows, problem.d.columns, problem.k()}))
    std::swap(order[0], order[1]);
  for (const LtAlgorithm algorithm : order) {
    const std::size_t workspace = lt_workspace_bytes(problem, algorithm);
    if (workspace > preferred->max_workspace || *count == wanted) continue;
    const std::uint64_t alignment = std::min({preferred->a, preferred->b, preferred->c, preferred->d});
    const lockstep::ptx::LtChosen chosen{static_cast<std::uint64_t>(algorithm),
                                         lockstep::ptx::fingerprint(problem, alignment), alignment};
    cublasLtMatmulHeuristicResult_t& result = results[(*count)++];
    result = {};
    std::memcpy(result.algo.data, &chosen, sizeof chosen);
    result.workspaceSize = workspace;
    result.state = CUBLAS_STATUS_SUCCESS;
  }
  return *count > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  LOCKSTEP_LT;
  const auto [status, problem] = lt_asked("cublasLtMatmulAlgoCheck", handle, desc, a, b, c, d);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const auto chosen = lockstep::ptx::chosen_of(*algorithm);
  if (!lockstep::ptx::is_of(chosen, problem)) return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = {};
  result->algo = *algorithm;
  result->workspaceSize = lt_workspace_bytes(problem, static_cast<LtAlgorithm>(chosen.algorithm));
  result->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

/// Only the number tells the two from each other.
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void* value,
                                                    std::size_t bytes, std::size_t* written) {
  const std::uint64_t number = attribute == CUBLASLT_ALGO_CONFIG_ID ? lockstep::ptx::chosen_of(*algorithm).algorithm
                               : attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? 1
                                                                              : 0;
  const bool is_short =
      attribute == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID || attribute == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
  *written = is_short ? sizeof(std::uint16_t) : sizeof(std::uint32_t);
  if (bytes != *written) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &number, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t in_a, const void* b, cublasLtMatrixLayout_t in_b, const void* beta,
                              const void* c, cublasLtMatrixLayout_t in_c, void* d, cublasLtMatrixLayout_t in_d,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t workspace_bytes,
                              cudaStream_t stream) {
  LOCKSTEP_LT;
  using lockstep::ptx::is_aligned;
  using lockstep::ptx::lt_wrong;
  const auto [status, problem] = lt_asked("cublasLtMatmul", handle, desc, in_a, in_b, in_c, in_d);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  float factor = 0, of_c = 1;
  std::memcpy(&factor, alpha, sizeof factor);
  std::memcpy(&of_c, beta, sizeof of_c);
  if (factor != 1 || of_c != 0 || c != d) return lockstep::ptx::lt_unknown("a product that is scaled or added");
  if (algorithm == nullptr) return lockstep::ptx::lt_unknown("a product without an algorithm");
  const auto chosen = lockstep::ptx::chosen_of(*algorithm);
  if (!lockstep::ptx::is_of(chosen, problem)) return lt_wrong("an algorithm of another problem");
  const auto which = static_cast<LtAlgorithm>(chosen.algorithm);
  const std::size_t needed = lt_workspace_bytes(problem, which);
  if (workspace_bytes < needed || (needed > 0 && workspace == nullptr)) {
    return lt_wrong(fmt::format("a workspace of {} bytes, of which {} are needed", workspace_bytes, needed));
  }
  if (!is_aligned(workspace, lockstep::ptx::kWorkspaceAlignment)) return lt_wrong("a workspace that isn't aligned");
  const auto of = objects().descs.find(desc, "cublasLtMatmul");
  const lockstep::ptx::LtOperands operands{a, b, d, of->vector, of->aux, workspace};
  for (const void* const one :
       {a, b, static_cast<const void*>(d), static_cast<const void*>(of->vector), static_cast<const void*>(of->aux)}) {
    if (!is_aligned(one, chosen.alignment)) return lt_wrong("memory that is aligned less than was said");
  }
  const auto put = cudaInterpreterLaunch(stream, "cublasLtMatmul",
                                         std::make_shared<lockstep::ptx::LtKernel>(problem, which, operands));
  return put == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
