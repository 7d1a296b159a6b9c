// What a file of weights lacks that a model needs, as one message: both lists, and which of them are likely the same.
#pragma once

#include <string>
#include <vector>

#include "run/checkpoint/safetensors.hpp"

namespace lockstep::checkpoint {

struct WeightsFit {
  std::vector<NamedShape> missing;   ///< of the model
  std::vector<NamedShape> unused;    ///< of the file
  std::vector<std::string> refused;  ///< "tensor 'a': expected F32 [3], found F32 [2]"
  std::size_t wanted = 0;            ///< tensors of the model, with those that were found

  bool fits() const { return missing.empty() && refused.empty(); }
  /// Several lines, the first of which begins with the file's name.
  std::string message(const std::string& file) const;
};

}  // namespace lockstep::checkpoint
