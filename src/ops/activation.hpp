// What elementwise functions of float32 share as ops: gelu, and those of ops/activations/.
#pragma once

#include <string>

#include "ops/elementwise.hpp"

namespace lockstep::ops {

/// All but the kernels. `reads_output`: backward reads the output, else the input.
[[nodiscard]] OpDef activation(const std::string& name, const std::string& doc, bool reads_output);

}  // namespace lockstep::ops
