// The settings of weight decay, which all optimizers here have.
#pragma once

#include <string>
#include <vector>

#include "lockstep/attributes.hpp"

namespace lockstep::optim {

inline constexpr const char* kCoupledDecayDoc = "this times the parameter is added to its gradient";

inline void add_weight_decay(std::vector<AttributeSpec>& attributes, double weight_decay, const std::string& doc) {
  attributes.push_back(
      {.name = "weight_decay", .kind = AttributeKind::number, .doc = doc, .default_value = weight_decay, .minimum = 0});
  attributes.push_back({.name = "decay_all",
                        .kind = AttributeKind::boolean,
                        .doc = "decay norms and biases too",
                        .default_value = false});
}

inline double weight_decay_of(const Attributes& settings, bool decay) {
  return decay ? settings.number("weight_decay") : 0.0;
}

}  // namespace lockstep::optim
