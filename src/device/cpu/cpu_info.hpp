// Properties of the instruction sets that oneDNN uses. The names are oneDNN's, for what it really uses: one setting
// (ONEDNN_MAX_CPU_ISA) limits all kernels.
#pragma once

#include <dnnl.hpp>

namespace lockstep::device {

/// Whether `isa` includes all of `wanted`.
[[nodiscard]] bool has_isa(dnnl::cpu_isa isa, dnnl::cpu_isa wanted);

/// Whether there are instructions that multiply bfloat16 and add in float32: AVX-512 BF16 or AMX. Otherwise oneDNN
/// emulates them, if it supports them at all.
[[nodiscard]] bool multiplies_bf16(dnnl::cpu_isa isa);

}  // namespace lockstep::device
