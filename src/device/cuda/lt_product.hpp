// LtProduct: one matrix product of fixed sizes by cuBLASLt, summed in fp32, with form and algorithm chosen when it is
// made: of the forms that are asked for the first that the library has an algorithm for, and of these the first that it
// proposes which needs no more workspace than allowed and adds over k in one piece (no split-K). So all shards are
// computed by the same code. What it proposes depends on the GPU's model, the library's version and the sizes only.
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

/// What cuBLASLt knows of a product in this form, but for the matrices' layouts; pointers only say how what they will
/// point to is aligned. Needs no GPU.
[[nodiscard]] Handle<LtMatmulDescTraits> make_product_desc(const ColumnProduct& product, const ProductForm& form,
                                                           const GpuPlace& place);

class LtProduct {
 public:
  static constexpr std::size_t kMaxWorkspace = std::size_t{32} << 20;  ///< bytes
  static constexpr std::size_t kAlignment = 16;                        ///< bytes, of every operand
  static constexpr std::size_t kWorkspaceAlignment = 256;

  /// `forms`: the best first. None where the library has an algorithm for no form, or a size is 0. Throws Error(usage)
  /// where it does not propose the one that is wanted.
  [[nodiscard]] static std::optional<LtProduct> make(const GpuStream& stream, const ColumnProduct& product,
                                                     std::span<const ProductForm> forms, const WantedAlgorithm& wanted);

  [[nodiscard]] std::size_t workspace_bytes() const { return chosen_.workspaceSize; }
  /// Enqueues it on the stream.
  void run(const GpuStream& stream, const ProductOperands& operands, void* workspace);
  [[nodiscard]] const ProductForm& form() const { return form_; }
  /// "cuBLASLt algorithm 20, tile 15, stages 18, ...", the library's own numbers: all that an algorithm has. Behind
  /// them stands suffix_of() the form.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  LtProduct(const GpuPlace& place, const ColumnProduct& product, const ProductForm& form);
  bool choose(const GpuStream& stream, const std::string& wanted);
  [[nodiscard]] bool takes(const GpuStream& stream, const cublasLtMatmulAlgo_t& algorithm) const;
  void point(const ProductOperands& operands, const GpuPlace& place);

  ProductForm form_;

  Handle<LtMatmulDescTraits> desc_;
  Handle<LtLayoutTraits> a_, b_, d_;
  cublasLtMatmulHeuristicResult_t chosen_{};
  std::string name_;
};

}  // namespace lockstep::device
