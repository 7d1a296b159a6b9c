// LtProduct: one matrix product of fixed sizes by cuBLASLt, summed in fp32. Form and algorithm are chosen when it is
// made: the first of the given forms for which the library has an algorithm, and for it the first proposed algorithm
// that needs no more workspace than allowed and adds over k in one piece (no split-K). So all micro-batches are
// computed by the same code. What the library proposes depends only on the GPU's model, the library's version and the
// sizes.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "device/cuda/gpu_stream.hpp"
#include "device/gpu/product_form.hpp"
#include "device/gpu/wanted_algorithm.hpp"

namespace lockstep::device {

struct LtMatmulDescTraits {
  using Value = cublasLtMatmulDesc_t;
  static void destroy(Value desc) noexcept { report_gpu(cublasLtMatmulDescDestroy(desc), "cublasLtMatmulDescDestroy"); }
};
struct LtLayoutTraits {
  using Value = cublasLtMatrixLayout_t;
  static void destroy(Value layout) noexcept {
    report_gpu(cublasLtMatrixLayoutDestroy(layout), "cublasLtMatrixLayoutDestroy");
  }
};

/// The description of a product in this form, without the matrices' layouts; pointers only tell the alignment. Needs no
/// GPU.
[[nodiscard]] Handle<LtMatmulDescTraits> make_product_desc(const ColumnProduct& product, const ProductForm& form,
                                                           const GpuPlace& place);

class LtProduct {
 public:
  static constexpr std::size_t kMaxWorkspace = std::size_t{32} << 20;  ///< bytes
  static constexpr std::size_t kAlignment = 16;                        ///< of every operand, in bytes
  static constexpr std::size_t kWorkspaceAlignment = 256;

  /// `forms`: the best first. Returns nothing if the library has no algorithm for any form, or a size is 0. Throws
  /// Error(usage) if the library does not propose the requested algorithm.
  [[nodiscard]] static std::optional<LtProduct> make(const GpuStream& stream, const ColumnProduct& product,
                                                     std::span<const ProductForm> forms, const WantedAlgorithm& wanted);

  std::size_t workspace_bytes() const { return chosen_.workspaceSize; }
  /// Enqueues it on the stream.
  void run(const GpuStream& stream, const ProductOperands& operands, void* workspace);
  const ProductForm& form() const { return form_; }
  /// "cuBLASLt algorithm 20, tile 15, stages 18, ...": the library's own numbers, which identify the algorithm,
  /// followed by suffix_of() the form.
  const std::string& name() const { return name_; }

 private:
  LtProduct(const GpuPlace& place, const ColumnProduct& product, const ProductForm& form);
  bool choose(const GpuStream& stream, const std::string& wanted);
  bool takes(const GpuStream& stream, const cublasLtMatmulAlgo_t& algorithm) const;
  void point(const ProductOperands& operands, const GpuPlace& place);

  ProductForm form_;

  Handle<LtMatmulDescTraits> desc_;
  Handle<LtLayoutTraits> a_, b_, d_;
  cublasLtMatmulHeuristicResult_t chosen_{};
  std::string name_;
};

}  // namespace lockstep::device
