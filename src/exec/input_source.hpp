// Where a shard's inputs come from. exec knows no data set; train binds a loader to this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/tensor.hpp"

namespace lockstep::exec {

struct ShardInputs {
  std::vector<const void*> tensors;  ///< one per Graph::inputs, in that order
  std::int64_t valid = 0;            ///< samples that count; the rest is padding
};

class InputSource {
 public:
  virtual ~InputSource() = default;
  /// Overwrites `inputs` when the shard's are there; blocks until then. Called by several workers, each with its own
  /// `inputs`. The tensors are valid until release().
  virtual void get(std::uint64_t step, int shard, ShardInputs& inputs) = 0;
  virtual void release(std::uint64_t step, int shard) = 0;
};

}  // namespace lockstep::exec
