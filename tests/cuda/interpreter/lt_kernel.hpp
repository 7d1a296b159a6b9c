// A product of cuBLASLt as the interpreted GPU computes it: what its descriptors say, and the kernel that does it.
// Factors are multiplied and added in fp32, and the result is rounded once, behind the epilogue.
#pragma once

#include <cublasLt.h>

#include <string>

#include "cuda/interpreter/library_elements.hpp"

namespace lockstep::ptx {

/// By columns: element (i, j) is the one at i + j * step.
struct LtMatrix {
  Element element = Element::fp32;
  std::int64_t rows = 0, columns = 0, step = 0;
};

struct LtProblem {
  LtMatrix a, b, d;
  bool a_transposed = false, b_transposed = false, tf32 = false;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  Element vector = Element::fp32;  ///< of a bias that is added, or of sums that are written
  std::int64_t aux_step = 0;

  [[nodiscard]] std::int64_t k() const { return a_transposed ? a.rows : a.columns; }
  [[nodiscard]] bool adds_bias() const { return (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
  [[nodiscard]] bool sums_b() const { return epilogue == CUBLASLT_EPILOGUE_BGRADB; }
  [[nodiscard]] bool takes_gelu() const { return (epilogue & CUBLASLT_EPILOGUE_GELU) != 0; }
  [[nodiscard]] bool takes_gelu_gradient() const { return epilogue == CUBLASLT_EPILOGUE_DGELU; }
  [[nodiscard]] bool has_aux() const { return takes_gelu() || takes_gelu_gradient(); }
  /// All of it: equal problems have equal text.
  [[nodiscard]] std::string text() const;
};

/// They differ in the order in which they add, and so in bits.
enum class LtAlgorithm : u8 {
  in_parts = 1,  ///< of 16 along k, each added up first; sums lie in the workspace, in fp32
  plain = 2      ///< one after the other; no workspace
};
[[nodiscard]] std::size_t lt_workspace_bytes(const LtProblem& problem, LtAlgorithm algorithm);

struct LtOperands {
  const void *a = nullptr, *b = nullptr;
  void* d = nullptr;
  void *vector = nullptr, *aux = nullptr;
  void* workspace = nullptr;
};

class LtKernel final : public LibraryKernel {
 public:
  LtKernel(const LtProblem& problem, LtAlgorithm algorithm, const LtOperands& operands)
      : problem_(problem), algorithm_(algorithm), of_(operands) {}
  bool run(LibraryMemory& memory) override;
  [[nodiscard]] LibraryCost cost() const override;

 private:
  /// [columns, rows] as the product reads it: without its gaps, and as its transpose where that is wanted.
  [[nodiscard]] static std::vector<float> factor(LibraryOperands& on, const LtMatrix& matrix, const void* from,
                                                 bool transposed);
  [[nodiscard]] std::vector<float> sums(const std::vector<float>& a, const std::vector<float>& b) const;
  void finish(LibraryOperands& on, std::vector<float> sums, const std::vector<float>& b) const;

  LtProblem problem_;
  LtAlgorithm algorithm_;
  LtOperands of_;
};

}  // namespace lockstep::ptx
