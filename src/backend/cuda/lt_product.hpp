// LtProduct: one matrix product of fixed sizes by cuBLASLt, summed in fp32, with the algorithm chosen when it is made:
// the first that the library proposes which needs no more workspace than allowed and adds over k in one piece (no
// split-K). So all shards are computed by the same code. What it proposes depends on the GPU's model, the library's
// version and the sizes only.
#pragma once

#include <optional>
#include <string>

#include "backend/cuda/gpu_queue.hpp"
#include "backend/gpu/column_product.hpp"
#include "backend/gpu/plan_parts.hpp"
#include "backend/gpu/product_types.hpp"

namespace lockstep::backend {

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

class LtProduct {
 public:
  /// What the factors and the result point to.
  struct Operands {
    const void *a = nullptr, *b = nullptr;
    const float* bias = nullptr;  ///< [m], added to each column; of a product with bias only
    void* d = nullptr;
  };
  static constexpr std::size_t kMostWorkspace = std::size_t{32} << 20;  ///< bytes
  static constexpr std::size_t kAlignment = 16;                         ///< bytes, of every operand

  /// None where the library has no such algorithm, or a size is 0. Throws Error(usage) where it does not propose the
  /// one that is wanted.
  [[nodiscard]] static std::optional<LtProduct> make(const GpuQueue& queue, const ColumnProduct& product,
                                                     const ProductTypes& types, bool bias, const WantedPlan& wanted);

  [[nodiscard]] std::size_t workspace_bytes() const { return chosen_.workspaceSize; }
  /// Puts it on the queue's stream.
  void run(const GpuQueue& queue, const Operands& operands, void* workspace);
  /// "cuBLASLt algorithm 20, tile 15, stages 18, ...", the library's own numbers: all that an algorithm has.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  LtProduct() = default;
  bool choose(const GpuQueue& queue, const std::string& wanted);

  Handle<LtMatmulDescTraits> desc_;
  Handle<LtLayoutTraits> a_, b_, d_;
  cublasLtMatmulHeuristicResult_t chosen_{};
  std::string name_;
};

}  // namespace lockstep::backend
