// The canonical form of a job, and the digest that says whether two runs compute the same.
#pragma once

#include <string>

#include "config/rule.hpp"

namespace lockstep::config {

/// Of {"job": {...}}, as the rules write it.
[[nodiscard]] CanonicalJob canonical_job(const Json& whole);

}  // namespace lockstep::config
