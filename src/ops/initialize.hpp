// The attributes `init` and `std`, by which the job file chooses how an op's weights are initialised.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/graph.hpp"

namespace lockstep::ops {

/// `default_value`: the scheme of an op if the job file does not choose one.
inline std::vector<AttributeSpec> initializer_attributes(const std::string& default_value = "uniform") {
  return {{.name = "init",
           .kind = AttributeKind::text,
           .doc = "first values of the weight; uniform: bound 1/sqrt(fan in); normal: see std",
           .default_value = default_value,
           .choices = {"uniform", "normal", "truncated_normal", "he_normal", "he_normal_fan_out", "he_uniform",
                       "xavier_normal", "xavier_uniform", "zeros"}},
          {.name = "std",
           .kind = AttributeKind::number,
           .doc = "standard deviation; alone it means init: normal, whose default is 0.02",
           .optional = true,
           .minimum = 0}};
}

inline Initializer initializer_of(const Attributes& attributes, double fan_in, double fan_out) {
  std::string scheme = attributes.text("init");
  const double stddev = attributes.has("std") ? attributes.number("std") : 0.02;
  if (attributes.has("std") && scheme != "truncated_normal") scheme = "normal";
  if (scheme == "normal") return Initializer::normal(stddev);
  if (scheme == "truncated_normal") return {Initializer::Kind::truncated_normal, stddev};
  if (scheme == "zeros" || fan_in <= 0) return Initializer::zeros();
  if (scheme == "he_normal") return Initializer::normal(std::sqrt(2 / fan_in));
  if (scheme == "he_normal_fan_out") return Initializer::normal(std::sqrt(2 / fan_out));
  if (scheme == "he_uniform") return Initializer::uniform(std::sqrt(6 / fan_in));
  if (scheme == "xavier_normal") return Initializer::normal(std::sqrt(2 / (fan_in + fan_out)));
  if (scheme == "xavier_uniform") return Initializer::uniform(std::sqrt(6 / (fan_in + fan_out)));
  return Initializer::uniform(1 / std::sqrt(fan_in));
}

/// For the bias that belongs to such a weight: uniform with the same bound for `uniform`, else zeros.
inline Initializer bias_initializer_of(const Attributes& attributes, double fan_in) {
  if (attributes.text("init") != "uniform" || attributes.has("std") || fan_in <= 0) return Initializer::zeros();
  return Initializer::uniform(1 / std::sqrt(fan_in));
}

}  // namespace lockstep::ops
