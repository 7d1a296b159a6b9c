// From the descriptors of a graph of attention to its operations.
#pragma once

#include <vector>

#include "cuda/interpreter/cudnn_attention.hpp"

namespace lockstep::ptx {

/// Appends what an operation of the graph does to `to`, and its tensors to `tensors`. Throws std::runtime_error that
/// says what isn't known.
void read_attention(const CudnnDescriptor& operation, CudnnProgram::Tensors& tensors,
                    std::vector<AttentionOperation>& to);

}  // namespace lockstep::ptx
