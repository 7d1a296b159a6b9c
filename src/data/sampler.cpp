#include "data/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lockstep/error.hpp"
#include "lockstep/random.hpp"

namespace lockstep::data {

namespace {

constexpr int kRounds = 6;

class TrainingOrder final : public SampleOrder {
 public:
  TrainingOrder(std::int64_t size, std::int64_t batch, int micro_batches, std::uint64_t seed)
      : sampler_(size, batch, seed), micro_batches_(micro_batches), seed_(seed) {}

  std::int64_t ids(std::uint64_t step, int micro_batch, std::span<std::int64_t> ids) const override {
    sampler_.ids(step, micro_batch, micro_batches_, ids);
    return ids.size();
  }
  std::uint64_t epoch_of(std::uint64_t step) const override { return sampler_.epoch_of(step); }
  std::uint64_t variant_of(std::uint64_t epoch) const override {
    return std::max<std::uint64_t>(1, mix(mix(seed_, hash_name("variant")), epoch));
  }

 private:
  Sampler sampler_;
  int micro_batches_;
  std::uint64_t seed_;
};

class EvaluationOrder final : public SampleOrder {
 public:
  explicit EvaluationOrder(std::int64_t size) : size_(size) {}

  std::int64_t ids(std::uint64_t /*step*/, int micro_batch, std::span<std::int64_t> ids) const override {
    const std::int64_t b = ids.size();
    const std::int64_t first = micro_batch * b, valid = std::min(b, size_ - first);
    LOCKSTEP_CHECK(micro_batch >= 0 && valid > 0,
                   fmt::format("evaluation micro-batch {} of {} samples, {} each", micro_batch, size_, b));
    for (std::int64_t i = 0; i < b; ++i) ids[i] = std::min(first + i, size_ - 1);
    return valid;
  }
  std::uint64_t epoch_of(std::uint64_t /*step*/) const override { return 0; }
  std::uint64_t variant_of(std::uint64_t /*epoch*/) const override { return 0; }

 private:
  std::int64_t size_;
};

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t key)
    : size_(size), key_(key), half_bits_((static_cast<unsigned>(std::bit_width(size - 1)) + 1) / 2) {
  LOCKSTEP_CHECK(size > 0, "a permutation of nothing");
}

std::uint64_t Permutation::round_trip(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_, right = value & mask;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const PhiloxWords words =
        philox(key_, {static_cast<std::uint32_t>(right), static_cast<std::uint32_t>(right >> 32), round, 0});
    const std::uint64_t mixed = (words[0] | (std::uint64_t{words[1]} << 32)) & mask;
    const std::uint64_t next = left ^ mixed;
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

std::uint64_t Permutation::operator()(std::uint64_t place) const {
  std::uint64_t value = place;
  do {
    value = round_trip(value);
  } while (value >= size_);
  return value;
}

Sampler::Sampler(std::int64_t size, std::int64_t batch, std::uint64_t seed)
    : size_(size), batch_(batch), seed_(mix(seed, hash_name("sampler"))), steps_(0) {
  LOCKSTEP_CHECK(batch > 0, "an empty batch");
  steps_ = size_ / batch_;
  if (steps_ == 0) {
    throw Error(ExitCode::configuration,
                fmt::format("job.batch_size: expected at most {}, the number of training samples, found {}; "
                            "choose a smaller batch",
                            size, batch));
  }
}

void Sampler::ids(std::uint64_t global_step, int micro_batch, int micro_batches, std::span<std::int64_t> ids) const {
  LOCKSTEP_CHECK(micro_batch >= 0 && micro_batch < micro_batches &&
                     ids.size() * static_cast<std::uint64_t>(micro_batches) == batch_,
                 fmt::format("micro-batch {} of {} with {} samples in a batch of {}", micro_batch, micro_batches,
                             ids.size(), batch_));
  const Permutation permutation(size_, mix(seed_, epoch_of(global_step)));
  const std::uint64_t first = (global_step % steps_) * batch_ + micro_batch * ids.size();
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = permutation(first + i);
}

std::unique_ptr<SampleOrder> make_training_order(std::int64_t size, std::int64_t batch, int micro_batches,
                                                 std::uint64_t seed) {
  return std::make_unique<TrainingOrder>(size, batch, micro_batches, seed);
}

std::unique_ptr<SampleOrder> make_evaluation_order(std::int64_t size) {
  return std::make_unique<EvaluationOrder>(size);
}

}  // namespace lockstep::data
