// What position_embedding adds its vectors to, for its kernels on CPUs and GPUs.
#pragma once

#include <cstdint>

#include "lockstep/op.hpp"

namespace lockstep::ops {

struct PositionRows {
  std::int64_t count, used;  ///< rows, to each of which the weight's first elements are added
};
[[nodiscard]] PositionRows position_rows(const KernelRequest& request);

}  // namespace lockstep::ops
