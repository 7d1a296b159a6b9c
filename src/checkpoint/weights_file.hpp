// WeightsFile: a safetensors file that a model takes values from, written by lockstep or by PyTorch, whose linear
// layers after `flatten` have their columns in another order (graph/flattened.hpp).
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
  /// `names`: what the job says about the file. `remedy`: for errors, what to do if neither it nor the file tells.
  WeightsFile(SafetensorsFile file, const Graph& graph, WeightNames names, std::string remedy);

  /// Whose names and order the file has; automatic: unknown, and irrelevant for this model.
  [[nodiscard]] WeightNames names() const { return names_; }
  /// Throws Error(data) if the tensor is missing, of another shape or of an unsupported type, or if the order of its
  /// elements is unknown.
  void require(const std::string& tensor, const Shape& shape) const;
  /// Copies elements of a required tensor, in the model's order, from `first` on until `out` is full.
  void copy(const std::string& tensor, const Shape& shape, std::span<float> out, std::int64_t first = 0) const;

 private:
  [[nodiscard]] std::string name_in_file(const std::string& tensor) const;

  SafetensorsFile file_;
  FlattenedTensors flattened_;
  WeightNames names_;  ///< automatic: unknown
  std::string remedy_;
};

}  // namespace lockstep::checkpoint
