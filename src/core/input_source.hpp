// Where a micro-batch's inputs come from: called by the executor, implemented by the sample loader.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

struct MicroBatchInputs {
  std::vector<const void*> tensors;  ///< one for each input of the graph, in its order; or the data from which the GPU
                                     ///< makes them
  std::int64_t valid = 0;            ///< samples that count; the rest is padding
};

class InputSource {
 public:
  virtual ~InputSource() = default;
  /// Fills `inputs` with the micro-batch's inputs; blocks until they are ready. Called by several workers, each with
  /// its own `inputs`. The tensors are valid until release().
  virtual void get(std::uint64_t step, int micro_batch, MicroBatchInputs& inputs) = 0;
  virtual void release(std::uint64_t step, int micro_batch) = 0;
};

}  // namespace lockstep
