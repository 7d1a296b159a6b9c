// Filling a Sample in place.
#pragma once

#include <string>

#include "lockstep/data_set.hpp"

namespace lockstep::data {

/// Gives `tensor` this spec; keeps its memory if it already has it.
inline void prepare(Tensor& tensor, const TensorSpec& spec) {
  if (tensor.bytes() == nullptr || !(tensor.spec() == spec)) tensor = Tensor(spec);
}

/// Names the sample's tensors after the features.
inline void prepare_names(Sample& sample, const std::vector<Feature>& features) {
  sample.resize(features.size());
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (sample[i].name != features[i].name) sample[i].name = features[i].name;
  }
}

inline void set_label(Tensor& tensor, std::int32_t label) {
  prepare(tensor, {DType::i32, {}});
  tensor.as<std::int32_t>()[0] = label;
}

}  // namespace lockstep::data
