// Graphs of one convolution, and what is done with its sums behind it, point by point. Everything between two
// operations is in fp32 and in no memory.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/interpreter/cudnn_program.hpp"

namespace lockstep::ptx {

struct CudnnOperation {
  enum class Kind : u8 { output, image_gradient, weight_gradient, add, relu, identity };
  using Axes = std::array<std::int64_t, 2>;  ///< height and width

  Kind kind = Kind::identity;
  /// As the direction of a convolution has them: image and weight; the output's gradient and the weight; the output's
  /// gradient and the image. Of what is done point by point: the operand, and what is added to it.
  std::int64_t first = 0, second = 0;
  std::int64_t result = 0;
  Axes before{}, after{}, stride{}, dilation{};

  [[nodiscard]] bool is_convolution() const { return kind <= Kind::weight_gradient; }
};

class ConvolutionProgram final : public CudnnProgram {
 public:
  /// Throws std::runtime_error that says what isn't known.
  explicit ConvolutionProgram(const CudnnDescriptor& graph);

  [[nodiscard]] const std::vector<CudnnOperation>& operations() const { return operations_; }
  /// The sums of the convolution.
  [[nodiscard]] const CudnnTensor& sums() const { return tensor(operations_.at(0).result); }
  [[nodiscard]] bool has(CudnnOperation::Kind kind) const;
  [[nodiscard]] bool is_low_precision() const;
  [[nodiscard]] LibraryCost cost() const;

  [[nodiscard]] std::string refusal() const override;
  [[nodiscard]] std::vector<CudnnEngine> engines() const override;
  [[nodiscard]] std::vector<cudnnBackendNumericalNote_t> notes(CudnnEngine engine) const override;
  [[nodiscard]] std::int64_t workspace_bytes(CudnnEngine engine) const override;
  [[nodiscard]] std::int64_t samples() const override;
  [[nodiscard]] std::shared_ptr<LibraryKernel> kernel(CudnnEngine engine, CudnnOperands operands) const override;

 private:
  std::vector<CudnnOperation> operations_;
};

}  // namespace lockstep::ptx
