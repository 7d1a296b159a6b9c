// Decodes a kernel's text into executable form. Anything unknown, an instruction, a modifier, a directive or an
// operand, is an error that names it, with file and line.
#pragma once

#include "cuda/interpreter/ptx_text.hpp"

namespace lockstep::ptx {

/// Throws std::runtime_error.
Kernel decode(const KernelText& text);

}  // namespace lockstep::ptx
