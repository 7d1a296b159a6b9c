// What the instruction sets have that oneDNN uses. The names are oneDNN's, of what it uses itself: one setting
// (ONEDNN_MAX_CPU_ISA) lowers it for all kernels.
#pragma once

#include <dnnl.hpp>

namespace lockstep::device {

/// Whether `isa` has all of `wanted`.
[[nodiscard]] bool has_isa(dnnl::cpu_isa isa, dnnl::cpu_isa wanted);

/// Whether there are instructions that multiply bfloat16 and add in float32: AVX-512 BF16 or AMX. With less oneDNN
/// would emulate them, where it can at all.
[[nodiscard]] bool multiplies_bf16(dnnl::cpu_isa isa);

}  // namespace lockstep::device
