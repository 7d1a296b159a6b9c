#include "device/cuda/lt_product.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "device/layer_algorithms.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device {

namespace {

struct LtPreferenceTraits {
  using Value = cublasLtMatmulPreference_t;
  static void destroy(Value preference) noexcept {
    report_gpu(cublasLtMatmulPreferenceDestroy(preference), "cublasLtMatmulPreferenceDestroy");
  }
};
using LtPreference = Handle<LtPreferenceTraits>;

template <class T>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const T& value, const GpuPlace& place) {
  LOCKSTEP_GPU(place, cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value));
}
template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value,
         const GpuPlace& place) {
  LOCKSTEP_GPU(place, cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
}

cudaDataType_t type_of(DType dtype) {
  return dtype == DType::bf16 ? CUDA_R_16BF : dtype == DType::f16 ? CUDA_R_16F : CUDA_R_32F;
}

cublasLtEpilogue_t name_for_library(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::gelu:
      return CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::bias_gelu:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::gelu_gradient:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::sums_of_b:
      return CUBLASLT_EPILOGUE_BGRADB;
  }
  LOCKSTEP_CHECK(false, "an epilogue of the list");
}

/// Whether every GPU supports the form: not, for example, a bias whose type differs from the result's.
bool every_gpu_has(const ProductForm& form) {
  return form.epilogue == Epilogue::none || (form.epilogue == Epilogue::bias && form.bias == form.types.result);
}

/// aux has d's type by default, and so has a vector that is written. Until the operands are known, the pointers only
/// tell their alignment.
void set_epilogue(cublasLtMatmulDesc_t desc, const ColumnProduct& product, const ProductForm& form,
                  const GpuPlace& place) {
  constexpr std::uintptr_t kAligned = LtProduct::kAlignment;
  set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, name_for_library(form.epilogue), place);
  if (adds_bias(form.epilogue) || form.epilogue == Epilogue::sums_of_b) {
    const DType type = adds_bias(form.epilogue) ? form.bias : form.types.result;
    set(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(type), place);
    set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, kAligned, place);
  }
  if (has_aux(form.epilogue)) {
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, aux_stride(product), place);
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, kAligned, place);
  }
}

Handle<LtLayoutTraits> make_layout(DType dtype, const ColumnMatrix& matrix, const GpuPlace& place) {
  cublasLtMatrixLayout_t layout = nullptr;
  LOCKSTEP_GPU(place, cublasLtMatrixLayoutCreate(&layout, type_of(dtype), static_cast<std::uint64_t>(matrix.rows),
                                                 static_cast<std::uint64_t>(matrix.columns), matrix.step()));
  return Handle<LtLayoutTraits>(layout);
}

LtPreference make_preference(const GpuPlace& place) {
  cublasLtMatmulPreference_t raw = nullptr;
  LOCKSTEP_GPU(place, cublasLtMatmulPreferenceCreate(&raw));
  LtPreference preference(raw);
  set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, LtProduct::kMaxWorkspace, place);
  // Only algorithms that do not split k: for the others, the order of additions is up to the library.
  set(raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE}, place);
  constexpr std::uint32_t kBytes = LtProduct::kAlignment;
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(raw, attribute, kBytes, place);
  }
  return preference;
}

template <class T>
T of_algorithm(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute,
               const GpuPlace& place) {
  T value{};
  std::size_t written = 0;
  LOCKSTEP_GPU(place, cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written));
  return value;
}

std::string name_of_algorithm(const cublasLtMatmulAlgo_t& algorithm, const GpuPlace& place) {
  return fmt::format("cuBLASLt algorithm {}, tile {}, stages {}, swizzle {}, option {}, inner {}, cluster {}",
                     of_algorithm<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID, place),
                     of_algorithm<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, place),
                     of_algorithm<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID, place),
                     of_algorithm<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, place),
                     of_algorithm<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, place),
                     of_algorithm<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, place),
                     of_algorithm<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, place));
}

bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % LtProduct::kAlignment == 0;
}

}  // namespace

Handle<LtMatmulDescTraits> make_product_desc(const ColumnProduct& product, const ProductForm& form,
                                             const GpuPlace& place) {
  const cublasComputeType_t compute = form.types.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t raw = nullptr;
  LOCKSTEP_GPU(place, cublasLtMatmulDescCreate(&raw, compute, CUDA_R_32F));
  Handle<LtMatmulDescTraits> desc(raw);
  const auto operation = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(desc.get(), CUBLASLT_MATMUL_DESC_TRANSA, operation(product.a.transposed), place);
  set(desc.get(), CUBLASLT_MATMUL_DESC_TRANSB, operation(product.b.transposed), place);
  set_epilogue(desc.get(), product, form, place);
  return desc;
}

LtProduct::LtProduct(const GpuPlace& place, const ColumnProduct& product, const ProductForm& form)
    : form_(form),
      desc_(make_product_desc(product, form, place)),
      a_(make_layout(form.types.factors, product.a, place)),
      b_(make_layout(form.types.factors, product.b, place)),
      d_(make_layout(form.types.result, {product.m(), product.n()}, place)) {}

std::optional<LtProduct> LtProduct::make(const GpuStream& stream, const ColumnProduct& product,
                                         std::span<const ProductForm> forms, const WantedAlgorithm& wanted) {
  if (wanted.name == kOwnKernel) return std::nullopt;
  if (product.m() == 0 || product.n() == 0 || product.k() == 0) return std::nullopt;
  for (const ProductForm& form : forms) {
    LOCKSTEP_CHECK(!has_aux(form.epilogue) || aux_fits(product), "a stride that cuBLASLt takes");
    LtProduct made(stream.place(), product, form);
    if (made.choose(stream, wanted.name)) return made;
  }
  if (!wanted.name.empty()) throw algorithm_not_there(stream.place(), wanted);
  return std::nullopt;
}

bool LtProduct::choose(const GpuStream& stream, const std::string& wanted) {
  const GpuPlace& place = stream.place();
  const LtPreference preference = make_preference(place);
  std::array<cublasLtMatmulHeuristicResult_t, 32> proposed{};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(stream.cublas_lt(), desc_.get(), a_.get(), b_.get(), d_.get(), d_.get(),
                                     preference.get(), static_cast<int>(proposed.size()), proposed.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  // For some combinations of epilogue and types, it reports "not supported" in this way.
  if (status == CUBLAS_STATUS_INVALID_VALUE && !every_gpu_has(form_)) return false;
  LOCKSTEP_GPU(place, status);
  for (int i = 0; i < count; ++i) {
    const auto& one = proposed[i];
    if (one.state != CUBLAS_STATUS_SUCCESS || one.workspaceSize > kMaxWorkspace) continue;
    if (of_algorithm<std::int32_t>(one.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, place) > 1) continue;
    if (of_algorithm<std::uint32_t>(one.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, place) !=
        CUBLASLT_REDUCTION_SCHEME_NONE) {
      continue;
    }
    if (!takes(stream, one.algo)) continue;
    name_ = name_of_algorithm(one.algo, place) + suffix_of(form_);
    if (!wanted.empty() && name_ != wanted) continue;
    chosen_ = one;
    return true;
  }
  return false;
}

// The heuristic only considers sizes; this check considers everything that the call will get.
bool LtProduct::takes(const GpuStream& stream, const cublasLtMatmulAlgo_t& algorithm) const {
  cublasLtMatmulHeuristicResult_t checked{};
  return cublasLtMatmulAlgoCheck(stream.cublas_lt(), desc_.get(), a_.get(), b_.get(), d_.get(), d_.get(), &algorithm,
                                 &checked) == CUBLAS_STATUS_SUCCESS &&
         checked.state == CUBLAS_STATUS_SUCCESS && checked.workspaceSize <= kMaxWorkspace;
}

void LtProduct::point(const ProductOperands& operands, const GpuPlace& place) {
  const void* const vector = operands.bias != nullptr ? operands.bias : operands.b_sums;
  const void* const aux = operands.aux != nullptr ? operands.aux : operands.written_aux;
  LOCKSTEP_CHECK((vector != nullptr) == (adds_bias(form_.epilogue) || form_.epilogue == Epilogue::sums_of_b) &&
                     (aux != nullptr) == has_aux(form_.epilogue),
                 "a product is given what its epilogue takes");
  LOCKSTEP_CHECK(is_aligned(operands.a) && is_aligned(operands.b) && is_aligned(operands.d) && is_aligned(vector) &&
                     is_aligned(aux),
                 "operands of cuBLASLt are aligned as its algorithm was chosen for");
  if (vector != nullptr) set(desc_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector, place);
  if (aux != nullptr) set(desc_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux, place);
}

void LtProduct::run(const GpuStream& stream, const ProductOperands& operands, void* workspace) {
  LOCKSTEP_CHECK(reinterpret_cast<std::uintptr_t>(workspace) % kWorkspaceAlignment == 0, "a workspace for cuBLASLt");
  point(operands, stream.place());
  constexpr float kOne = 1, kZero = 0;
  LOCKSTEP_GPU(stream.place(), cublasLtMatmul(stream.cublas_lt(), desc_.get(), &kOne, operands.a, a_.get(), operands.b,
                                              b_.get(), &kZero, operands.d, d_.get(), operands.d, d_.get(),
                                              &chosen_.algo, workspace, chosen_.workspaceSize, stream.cuda()));
}

}  // namespace lockstep::device
