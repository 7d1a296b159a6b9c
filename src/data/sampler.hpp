// Which samples make which micro-batch of which step: perm(seed, epoch)[step in epoch * batch + position], which
// depends on nothing else. The tail of an epoch that does not fill a batch is dropped (other samples every epoch).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/round_up.hpp"

namespace lockstep::data {

/// A permutation of 0 ... size - 1 that is computed element by element and needs no memory: a Feistel network over the
/// next power of four, with Philox as its round function; values beyond the size are mapped again (cycle walking).
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t key);
  std::uint64_t operator()(std::uint64_t place) const;

 private:
  std::uint64_t round_trip(std::uint64_t value) const;
  std::uint64_t size_, key_;
  unsigned half_bits_;
};

class Sampler {
 public:
  /// Throws Error(configuration) if there are fewer samples than one batch needs.
  Sampler(std::int64_t size, std::int64_t batch, std::uint64_t seed);
  std::uint64_t steps_per_epoch() const { return steps_; }
  std::uint64_t epoch_of(std::uint64_t global_step) const { return global_step / steps_; }
  /// The ids of one of `micro_batches` equal cuts of the step's batch; ids.size() is batch / micro-batches.
  void ids(std::uint64_t global_step, int micro_batch, int micro_batches, std::span<std::int64_t> ids) const;

 private:
  std::uint64_t size_, batch_, seed_, steps_;
};

/// Which samples a loader returns for (step, micro-batch), and in which variant.
class SampleOrder {
 public:
  virtual ~SampleOrder() = default;
  /// Fills ids and returns how many of them count; the others are copies of the last one.
  virtual std::int64_t ids(std::uint64_t step, int micro_batch, std::span<std::int64_t> ids) const = 0;
  virtual std::uint64_t epoch_of(std::uint64_t step) const = 0;
  /// The argument for DataSet::read_variant: 0 is the fixed form.
  virtual std::uint64_t variant_of(std::uint64_t epoch) const = 0;
};

[[nodiscard]] std::unique_ptr<SampleOrder> make_training_order(std::int64_t size, std::int64_t batch, int micro_batches,
                                                               std::uint64_t seed);

/// Micro-batch i has samples i * b ... (i + 1) * b - 1, in every step; there are ceil(size / b) micro-batches.
[[nodiscard]] std::unique_ptr<SampleOrder> make_evaluation_order(std::int64_t size);

/// Number of evaluation micro-batches of b samples.
[[nodiscard]] constexpr std::int64_t evaluation_micro_batches(std::int64_t size, std::int64_t b) {
  return divide_up(size, b);
}

}  // namespace lockstep::data
