// The canonical form of a job, and the digest that says whether two runs compute the same.
#pragma once

#include <string>

#include "config/rule.hpp"

namespace lockstep::config {

/// Fills `canonical` and `digest`. `root` is the rule of `job`.
void canonicalize(Job& job, const Rule& root);

}  // namespace lockstep::config
