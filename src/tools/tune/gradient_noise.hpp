// The gradient noise scale: the batch size up to which more samples a step save steps. After McCandlish et al., "An
// Empirical Model of Large-Batch Training", 2018 (appendix A.1).
#pragma once

#include <optional>
#include <vector>

namespace lockstep::tune {

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

}  // namespace lockstep::tune
