// Where on a GPU something happened, for errors: host, rank, GPU, step and op.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/error.hpp"

namespace lockstep::backend {

struct GpuPlace {
  std::string host;
  int rank = 0;
  std::string gpu;                      ///< "GPU 1 (NVIDIA H100 80GB HBM3, 0000:3b:00.0)"
  std::optional<std::uint64_t> step{};  ///< this and the op change as the run goes on; none: before the first
  std::string op;                       ///< "layer_norm 'block3.norm1'"; empty: outside of any

  /// "node7, rank 3, GPU 1 (...), step 120, layer_norm 'block3.norm1'"
  [[nodiscard]] std::string text() const;
};

/// A call of a GPU library that failed: Error(infrastructure) with the place, the call, and what the library says.
[[nodiscard]] Error gpu_error(const GpuPlace& place, const std::string& call, int code, const std::string& what);

}  // namespace lockstep::backend
