// The memory of each rank of a placed model, in bytes by kind, computed from sizes alone.
//
// It counts what a process would show as resident. So memory that ranks of one host share is counted on each rank that
// touches it: the sums of a gradient, which all of them read, and the slices of other ranks' partial sums that it adds.
// A host is charged for it only once: the comparison of a rank with its limit leaves out what belongs to other ranks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/optimizer.hpp"
#include "run/plan/placed_model.hpp"
#include "step/optim/updater.hpp"

namespace lockstep::plan {

/// What the data of a job need. In bytes, except for counts.
struct DataNeeds {
  std::int64_t micro_batch = 0;    ///< the inputs of a micro-batch, as a step gets them
  std::int64_t cached_sample = 0;  ///< a decoded sample in the cache; 0: none is kept
  std::int64_t samples = 0, validation_samples = 0;
  std::int64_t cache = 0;  ///< largest cache of the training set; an evaluation's has a quarter of it
  double epochs = 1;       ///< of the run
  int depth = 4;           ///< batches that are loaded ahead
};

struct RankMemory {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;    ///< sums over micro-batches, partial sums, and TensorBoard's copies of them
  std::int64_t optimizer = 0;    ///< the optimizer's states, and what it makes steps of whole matrices with
  std::int64_t statistics = 0;   ///< running statistics of batch norm
  std::int64_t activations = 0;  ///< including the workspace of kernels, for all workers
  std::int64_t kernels = 0;      ///< packed weights, which kernels keep or, if parameters are divided, make again
  std::int64_t messages = 0;     ///< received from other parts
  std::int64_t data = 0;         ///< batches, and the cache of decoded samples
  std::int64_t checkpoint = 0;   ///< the copy that is written while training continues
  std::int64_t process = 0;      ///< the program, its libraries, MPI, indexes of the data: measured, not computed
  std::int64_t waiting = 0;      ///< included in gradients: partial sums that wait for others; when micro-batches move,
                                 ///< what has been taken for them is kept
  std::int64_t of_others = 0;    ///< included in the above: shared memory that counts as that of other ranks of the
                                 ///< host

  std::int64_t total() const;
  std::int64_t charged() const { return total() - of_others; }
  /// The part that the rank cannot do without, however small the rest is: if it does not fit, a run is refused.
  std::int64_t least() const { return parameters + gradients + optimizer + statistics + activations; }
  /// Name and bytes, in the order of tables.
  std::vector<std::pair<std::string, std::int64_t>> kinds() const;
};

/// What the memory of a run depends on besides its placement.
struct MemorySetup {
  const ModelSetup& model;
  std::vector<optim::OptimizerState> states = {};  ///< of the optimizer
  DataNeeds data;
  std::int64_t process = 0;                 ///< bytes of a process before everything else
  bool shares = true;                       ///< ranks of a host share memory; GPUs do not
  const OptimizerDef* optimizer = nullptr;  ///< null: it makes no steps of whole matrices
};

/// A run of the model's job, with the states and steps of its optimizer. `model` must outlive it.
[[nodiscard]] MemorySetup memory_setup(const ModelSetup& model, const OptimizerRegistry& optimizers,
                                       const DataNeeds& data = {}, std::int64_t process = 0);

/// By rank.
[[nodiscard]] std::vector<RankMemory> memory_of(const PlacedModel& placed, const MemorySetup& setup);

/// Bytes that a micro-batch of the part receives from other parts.
[[nodiscard]] std::int64_t bytes_of_messages(const PlacedPart& part);

}  // namespace lockstep::plan
