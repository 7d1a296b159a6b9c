// Graphs of attention: products of matrices, and what lies between them, point by point and row by row, in the
// operations into which cuDNN's frontend takes attention and its gradients apart. The one operation that the backend
// has for the whole of it, which the frontend asks for without a causal mask, is taken apart here in the same way.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cuda/interpreter/cudnn_program.hpp"

namespace lockstep::ptx {

struct AttentionOperation {
  enum class Kind : u8 { product, pointwise, row_reduction, reshape };

  Kind kind = Kind::pointwise;
  std::vector<std::int64_t> operands;
  std::int64_t result = 0;
  cudnnPointwiseMode_t mode{};
  std::size_t axis = 0;               ///< of which CUDNN_POINTWISE_GEN_INDEX gives the positions
  cudnnReduceTensorOp_t reduction{};  ///< the largest, or the sum, of each row
  std::array<std::size_t, 4> axes{};  ///< of a reshape: the operand's, in the order of the result's
};

class AttentionProgram final : public CudnnProgram {
 public:
  /// Throws std::runtime_error that says what isn't known.
  explicit AttentionProgram(const CudnnDescriptor& graph);

  [[nodiscard]] const std::vector<AttentionOperation>& operations() const { return operations_; }
  /// Whether it is made by one operation and read by another, and yet in memory.
  [[nodiscard]] bool is_in_between(std::int64_t uid) const { return in_between_.contains(uid); }
  [[nodiscard]] LibraryCost cost() const;

  [[nodiscard]] std::string refusal() const override;
  [[nodiscard]] std::vector<CudnnEngine> engines() const override;
  [[nodiscard]] std::vector<cudnnBackendNumericalNote_t> notes(CudnnEngine engine) const override;
  [[nodiscard]] std::int64_t workspace_bytes(CudnnEngine engine) const override;
  [[nodiscard]] std::int64_t samples() const override;
  [[nodiscard]] std::shared_ptr<LibraryKernel> kernel(CudnnEngine engine, CudnnOperands operands) const override;

 private:
  void check(const AttentionOperation& operation) const;
  [[nodiscard]] std::vector<AttentionOperation> products() const;

  std::vector<AttentionOperation> operations_;
  std::set<std::int64_t> in_between_;
};

}  // namespace lockstep::ptx
