// WeightsFile: a safetensors file that a model takes values from, written by lockstep or by PyTorch, whose linear
// layers behind `flatten` have their columns in another order (graph/flattened.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "checkpoint/safetensors.hpp"
#include "graph/flattened.hpp"
#include "lockstep/job.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::checkpoint {

class WeightsFile {
 public:
  /// `names`: what the job says of the file. `remedy`: what to do where nobody says who wrote it, for errors.
  WeightsFile(SafetensorsFile file, const Graph& graph, WeightNames names, std::string remedy);

  /// Whose names and order it has; automatic: nobody says, and the model does not ask.
  [[nodiscard]] WeightNames names() const { return names_; }
  /// Throws Error(data) when the tensor is missing, of another shape or of a type that is not known, or when nobody
  /// says in which order its elements are.
  void require(const std::string& tensor, const Shape& shape) const;
  /// Copies elements of a tensor that was required, in the model's order, from `first` on into all of `out`.
  void copy(const std::string& tensor, const Shape& shape, std::span<float> out, std::int64_t first = 0) const;

 private:
  [[nodiscard]] std::string name_in_file(const std::string& tensor) const;

  SafetensorsFile file_;
  FlattenedTensors flattened_;
  WeightNames names_;  ///< automatic: nobody says
  std::string remedy_;
};

}  // namespace lockstep::checkpoint
