// The list of built-in ops; written by CMake from the folders beside this file.
#pragma once

#include "lockstep/op.hpp"

namespace lockstep::ops {

void add_built_in(OpRegistry& registry);

}  // namespace lockstep::ops
