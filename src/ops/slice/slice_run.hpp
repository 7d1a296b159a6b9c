// slice: of each of `outer` rows of `from` elements, `to` are kept, from `first` on; elements of dimensions behind the
// axis are counted, too.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

struct SliceRun {
  std::int64_t outer = 0, from = 0, first = 0, to = 0;
  /// Where element i of the output stands in the input.
  LOCKSTEP_HOST_DEVICE std::int64_t of(std::int64_t i) const { return i / to * from + first + i % to; }
};

[[nodiscard]] SliceRun slice_run(const KernelRequest& request);

}  // namespace lockstep::ops
