// WeightsFile: a safetensors file that a model takes values from, written by lockstep, by PyTorch, whose linear layers
// after `flatten` have their columns in another order (graph/flattened.hpp), or by libraries that have names of their
// own (graph/foreign_names.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/flattened.hpp"
#include "graph/foreign_names.hpp"
#include "lockstep/job.hpp"
#include "lockstep/tensor.hpp"
#include "run/checkpoint/safetensors.hpp"

namespace lockstep::checkpoint {

class WeightsFile {
 public:
  struct Reading {
    WeightNames names = WeightNames::automatic;  ///< what the job says about the file
    std::map<std::string, std::string> map;      ///< InitializeOptions::map
    std::string remedy;                          ///< for errors: what to do if neither job nor file tells the order
  };

  /// Throws Error(configuration) if `names` are a library's that has no such model.
  WeightsFile(SafetensorsFile file, const Graph& graph, Reading reading);

  /// Whose names and order the file has; automatic: unknown, and irrelevant for this model.
  WeightNames names() const { return reading_.names; }
  /// What the file says of itself under `key`; empty: nothing.
  std::string metadata(const std::string& key) const {
    const auto found = file_.metadata().find(key);
    return found == file_.metadata().end() ? "" : found->second;
  }
  /// Throws Error(data), with all that does not fit, if one of the model's tensors is missing, of another shape or of
  /// an unsupported type; or if the order of its elements is unknown.
  void require(const std::vector<NamedShape>& tensors) const;
  /// Copies elements of a required tensor, in the model's order, from `first` on until `out` is full.
  void copy(const std::string& tensor, const Shape& shape, std::span<float> out, std::int64_t first = 0) const;

  /// Whether the file has one of the model's tensors, or a part of it.
  bool has_part(const std::string& tensor) const;

 private:
  ForeignTensor in_file(const std::string& tensor) const;
  std::string mapped(const std::string& tensor) const;
  std::string with_or_without_prefix(const std::string& name) const;
  /// Of one of the library's tensors, in any of the spellings that its files have.
  std::string name_in_file(const std::string& name) const;
  void choose_library(const Graph& graph);
  void require_order(const std::string& tensor) const;
  bool has(const std::string& name) const { return file_.tensors().contains(name); }
  bool has_all(const ForeignTensor& tensor) const;
  std::string gap(const ForeignTensor& theirs) const;
  std::string difference(const ForeignTensor& theirs, const Shape& shape) const;

  SafetensorsFile file_;
  FlattenedTensors flattened_;
  Reading reading_;
  const ForeignModel* foreign_ = nullptr;
};

}  // namespace lockstep::checkpoint
