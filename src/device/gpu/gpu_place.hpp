// The place of an error on a GPU: host, rank, GPU, step and op.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "lockstep/error.hpp"

namespace lockstep::device {

struct GpuPlace {
  std::string host;
  int rank = 0;
  std::string gpu;                         ///< "GPU 1 (NVIDIA H100 80GB HBM3, 0000:3b:00.0)"
  std::optional<std::uint64_t> step = {};  ///< step and op change during the run; none: before the first step
  std::string op = {};                     ///< "layer_norm 'block3.norm1'"; empty: outside of any op

  /// "node7, rank 3, GPU 1 (...), step 120, layer_norm 'block3.norm1'"
  std::string text() const;
};

/// The latest op on each stream of a GPU. A kernel's fault shows up in any later call, on any stream and thread, so the
/// error names all ops that may have caused it.
class GpuTrail {
 public:
  explicit GpuTrail(GpuPlace place) : place_(std::move(place)) {}
  void enter(int stream, std::uint64_t step, const std::string& op);
  /// The latest step, and the ops of all streams in that step: "conv 'stem' or layer_norm 'block3.norm1'".
  GpuPlace place() const;

 private:
  struct Entered {
    std::uint64_t step = 0;
    std::string op;
  };
  GpuPlace place_;
  mutable std::mutex mutex_;
  std::map<int, Entered> entered_;  ///< by stream
};

/// For a call of a GPU library that failed: Error(infrastructure) with the place, the call, and the library's message.
[[nodiscard]] Error gpu_error(const GpuPlace& place, const std::string& call, int code, const std::string& what);

}  // namespace lockstep::device
