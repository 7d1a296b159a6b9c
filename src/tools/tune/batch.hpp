// Batch sizes: how fast each is, what memory it takes, and what it is worth by the gradient's noise. Then, for the size
// that is recommended, other numbers of micro-batches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/tune/comparison.hpp"

namespace lockstep::tune {

// The gradient noise scale: the batch size up to which more samples a step save steps. After McCandlish et al., "An
// Empirical Model of Large-Batch Training", 2018 (appendix A.1).

/// Norms of gradients at the same parameters, each the mean over so many samples.
struct GradientNorms {
  double samples = 0;
  std::vector<double> norms;
};

struct NoiseScale {
  double gradient_squared = 0;  ///< estimated square of the norm over all data
  double variance = 0;          ///< estimated trace of the covariance of a sample's gradient
  /// variance / gradient_squared, in samples; nullopt: the noise hides the gradient, more steps are needed.
  std::optional<double> samples;
};

/// `small` and `large` must have norms, and different samples.
[[nodiscard]] NoiseScale noise_scale(const GradientNorms& small, const GradientNorms& large);

/// Steps to a loss with batches of `batch`, as a multiple of those with the largest useful ones.
[[nodiscard]] double steps_factor(double batch, double noise);
/// Samples to a loss, as a multiple of those with the smallest batches.
[[nodiscard]] double samples_factor(double batch, double noise);

struct BatchSetup {
  ProbeSetup probes;
  std::int64_t batch = 0, micro_batches = 0;  ///< of the job
  std::int64_t smallest = 0, largest = 0;
  std::int64_t steps = 0;         ///< of each probe
  std::int64_t noise_steps = 0;   ///< batches from which the noise is estimated; 0: it is not
  std::int64_t warm_steps = 0;    ///< of training before the noise is estimated
  std::int64_t memory_limit = 0;  ///< bytes of a rank
};

struct BatchRow {
  std::int64_t batch = 0, micro_batches = 0;
  double step_seconds = 0, samples_per_second = 0;
  std::int64_t peak_memory = 0;  ///< bytes of the rank with the most; 0: unknown
  std::int64_t samples = 0;      ///< of the training set, the largest batch there is; 0: unknown
  std::optional<double> time;    ///< predicted seconds to a loss, by those of the best row; nullopt: noise unknown
  std::string failure;           ///< why it did not train; empty: it did
};

struct BatchVerdict {
  std::vector<BatchRow> sizes;                  ///< ascending, with as many samples in a micro-batch as the job has
  std::vector<BatchRow> micro_batches;          ///< of the recommended size, ascending
  std::optional<NoiseScale> noise;              ///< nullopt: it was not measured
  std::string noise_failure;                    ///< why it could not be; empty: it could
  std::string end;                              ///< why no larger size was tried
  int best_size = -1, best_micro_batches = -1;  ///< rows; -1: none has trained
};

/// Doubling from `smallest` to `largest`, by way of the job's own.
[[nodiscard]] std::vector<std::int64_t> batch_sizes(const BatchSetup& setup);
/// As many as give a micro-batch the samples that the job gives it, but at least one for each rank; a divisor of
/// `batch`.
[[nodiscard]] std::int64_t micro_batches_for(const BatchSetup& setup, std::int64_t batch);
/// Memory that a batch will need by the two largest that were measured: what a sample takes stays. 0: unknown.
[[nodiscard]] std::int64_t predicted_memory(const std::vector<BatchRow>& rows, std::int64_t batch);
/// Fills in `time` of each row by the noise scale, and returns the index of the best one.
int rank_sizes(std::vector<BatchRow>& rows, const std::optional<double>& noise);

[[nodiscard]] BatchVerdict tune_batch(const BatchSetup& setup, const Progress& progress);

}  // namespace lockstep::tune
