// Where a shard's inputs come from: what the executor asks and the loader of samples answers.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

struct ShardInputs {
  std::vector<const void*> tensors;  ///< one for each input of the graph, in its order; or what the GPU makes them of
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

}  // namespace lockstep
