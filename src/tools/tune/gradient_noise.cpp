#include "tools/tune/gradient_noise.hpp"

namespace lockstep::tune {

namespace {

double mean_square(const std::vector<double>& norms) {
  double sum = 0;
  for (const double norm : norms) sum += norm * norm;
  return sum / norms.size();
}

}  // namespace

NoiseScale noise_scale(const GradientNorms& small, const GradientNorms& large) {
  const double of_small = mean_square(small.norms), of_large = mean_square(large.norms);
  NoiseScale scale;
  scale.gradient_squared = (large.samples * of_large - small.samples * of_small) / (large.samples - small.samples);
  scale.variance = (of_small - of_large) / (1 / small.samples - 1 / large.samples);
  if (scale.gradient_squared > 0 && scale.variance >= 0) scale.samples = scale.variance / scale.gradient_squared;
  return scale;
}

double steps_factor(double batch, double noise) {
  return 1 + noise / batch;
}

double samples_factor(double batch, double noise) {
  return 1 + batch / noise;
}

}  // namespace lockstep::tune
