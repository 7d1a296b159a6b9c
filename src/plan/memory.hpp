// What a rank of a placed model has in memory, in bytes by kind, from sizes alone.
//
// Counted is what a process would show as resident. So memory that ranks of one host share is counted on each that
// touches it: the sums of a gradient, which all of them read, and the slices of other ranks' partial sums that it adds.
// A host is charged for it once: what a rank is held against its room by leaves out what is another rank's.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plan/placed_model.hpp"

namespace lockstep::plan {

/// What the data of a job need. All in bytes, but for counts.
struct DataNeeds {
  std::int64_t shard = 0;          ///< the inputs of a shard, as the step gets them
  std::int64_t cached_sample = 0;  ///< a decoded sample in the cache; 0: none is kept
  std::int64_t samples = 0, validation_samples = 0;
  std::int64_t cache = 0;  ///< most of the training set's cache; that of an evaluation has a quarter
  double epochs = 1;       ///< that the run trains
  int depth = 4;           ///< batches loaded ahead
};

struct RankMemory {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;    ///< sums over shards, partial sums, and what TensorBoard shows of them
  std::int64_t optimizer = 0;    ///< its states
  std::int64_t statistics = 0;   ///< running ones, of batch norm
  std::int64_t activations = 0;  ///< with the workspace of kernels, of all workers
  std::int64_t kernels = 0;      ///< packed weights, which kernels keep or, where parameters are divided, make anew
  std::int64_t messages = 0;     ///< what comes from other parts
  std::int64_t data = 0;         ///< batches, and the cache of decoded samples
  std::int64_t checkpoint = 0;   ///< the copy that is written while training goes on
  std::int64_t process = 0;      ///< the program, its libraries, MPI, indexes of the data: measured, not computed
  std::int64_t of_others = 0;    ///< of all these: shared memory that counts as that of other ranks of the host

  [[nodiscard]] std::int64_t total() const;
  [[nodiscard]] std::int64_t charged() const { return total() - of_others; }
  /// The least that the rank cannot do without, whatever else is small: what a run is refused by.
  [[nodiscard]] std::int64_t least() const { return parameters + gradients + optimizer + statistics + activations; }
  /// Name and bytes, in the order of tables.
  [[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> kinds() const;
};

/// What the memory of a run depends on beside its placement.
struct MemorySetup {
  const ModelSetup& model;
  int optimizer_states = 0;  ///< tensors that the optimizer keeps for each parameter
  DataNeeds data;
  std::int64_t process = 0;  ///< bytes of a process before any of it
  bool shares = true;        ///< ranks of a host share memory; GPUs do not
};

/// Of each rank.
[[nodiscard]] std::vector<RankMemory> memory_of(const PlacedModel& placed, const MemorySetup& setup);

/// Bytes of a gradient's partial sums that are alive at once beside the roots, where shards are computed in this order
/// by so many workers: what comm::AccumulationBuffers takes from its pool.
[[nodiscard]] std::int64_t pool_bytes(const comm::GradientBuckets& buckets, const std::vector<int>& shards, bool exact,
                                      int workers);

}  // namespace lockstep::plan
