// Gradients of an op's reference by central differences, in double.
#pragma once

#include "ops/op_driver.hpp"

namespace lockstep::ops {

/// The reference as a function of its inputs and parameters. Its value is the sum of every f32 output times the
/// problem's output gradient; for a loss, the sum of output 0.
class Objective {
 public:
  Objective(const OpCases& cases, const Problem& problem);
  [[nodiscard]] ReferenceResult outputs() const;
  /// d value / d element of input (or parameter) `tensor`.
  [[nodiscard]] double input_slope(std::size_t tensor, std::size_t element);
  [[nodiscard]] double parameter_slope(std::size_t tensor, std::size_t element);
  /// d value along `direction`, which has the tensor's elements.
  [[nodiscard]] double input_slope(std::size_t tensor, const std::vector<double>& direction);
  [[nodiscard]] double parameter_slope(std::size_t tensor, const std::vector<double>& direction);

 private:
  [[nodiscard]] double value() const;
  [[nodiscard]] double slope(DoubleTensor& tensor, std::size_t element);
  [[nodiscard]] double slope(DoubleTensor& tensor, const std::vector<double>& direction);

  const OpCases& cases_;
  const Problem& problem_;
  std::vector<DoubleTensor> inputs_, parameters_, states_, output_gradients_;
};

}  // namespace lockstep::ops
