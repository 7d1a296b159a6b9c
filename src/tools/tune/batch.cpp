#include "tools/tune/batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/words.hpp"
#include "launch/child.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::tune {

namespace {

constexpr double kMemoryShare = 0.9;  // of the limit that a probe may be predicted to take
constexpr int kMostMicroBatchCounts = 6;

std::vector<std::string> words(std::int64_t batch, std::int64_t micro_batches) {
  return {fmt::format("batch_size={}", batch), fmt::format("micro_batches={}", micro_batches)};
}

BatchRow try_batch(const BatchSetup& setup, std::int64_t batch, std::int64_t micro_batches, const Progress& progress) {
  const Candidate candidate{fmt::format("batch_size={} micro_batches={}", batch, micro_batches),
                            words(batch, micro_batches)};
  progress(candidate.name);
  const Compared compared = try_candidate(setup.probes, candidate, setup.steps);
  return {.batch = batch,
          .micro_batches = micro_batches,
          .step_seconds = compared.probe.step_seconds(),
          .samples_per_second = compared.samples_per_second,
          .peak_memory = compared.probe.peak_memory(),
          .samples = compared.probe.start ? compared.probe.start->samples : 0,
          .time = {},
          .failure = compared.probe.message};
}

/// Norms of gradients of batches of `micro_batches` micro-batches, at the parameters in `weights`, which a step does
/// not change.
GradientNorms norms_of(const BatchSetup& setup, const std::string& weights, std::int64_t micro_batches,
                       std::int64_t steps, std::string& failure) {
  const std::int64_t samples = setup.batch / setup.micro_batches * micro_batches;
  ProbeSetup probes = setup.probes;
  probes.ranks = std::min<std::int64_t>(probes.ranks, micro_batches);
  std::vector<std::string> overrides = words(samples, micro_batches);
  overrides.insert(overrides.end(), {"learning_rate=1e-30", "clip_norm=1e30", "optimizer=sgd"});
  if (!weights.empty()) overrides.push_back("initialize=" + weights);
  const Probe probe =
      run_probe(probes, fmt::format("noise of {}", telemetry::counted(samples, "sample")), steps, overrides);
  GradientNorms norms{.samples = static_cast<double>(samples), .norms = {}};
  for (const events::Step& step : probe.steps) {
    if (step.gradient_norm && std::isfinite(*step.gradient_norm)) norms.norms.push_back(*step.gradient_norm);
  }
  if (probe.failed()) failure = probe.message;
  if (norms.norms.empty() && failure.empty()) failure = "no gradient had a finite norm";
  return norms;
}

/// The noise after `warm_steps` steps of the job: one micro-batch against whole batches.
void measure_noise(const BatchSetup& setup, const Progress& progress, BatchVerdict& verdict) {
  if (setup.noise_steps == 0) return;
  if (setup.micro_batches < 2) {
    verdict.noise_failure = "a batch of one micro-batch has no smaller one to compare it with";
    return;
  }
  std::string weights;
  if (setup.warm_steps > 0) {
    const std::string name = "warm-up", run = setup.probes.directory + "/" + name;
    progress(fmt::format("{} steps of training, to measure the noise there", setup.warm_steps));
    const Probe warm = run_probe(setup.probes, name, setup.warm_steps, {"checkpoint={every: 1000000000 steps}"});
    if (warm.failed()) {
      verdict.noise_failure = warm.message;
      return;
    }
    weights = run + ".safetensors";
    const auto exported = launch::run_command({launch::own_program(), "checkpoint", "export", run, weights, "--force"},
                                              std::chrono::minutes(10));
    if (exported.code != 0) {
      verdict.noise_failure = exported.output;
      return;
    }
  }
  progress(fmt::format("the gradient's noise, from {} batches", setup.noise_steps));
  const GradientNorms large = norms_of(setup, weights, setup.micro_batches, setup.noise_steps, verdict.noise_failure);
  if (!verdict.noise_failure.empty()) return;
  const GradientNorms small = norms_of(setup, weights, 1, 4 * setup.noise_steps, verdict.noise_failure);
  if (!verdict.noise_failure.empty()) return;
  verdict.noise = noise_scale(small, large);
  if (!verdict.noise->samples) verdict.noise_failure = "the noise hides the gradient; try a larger --noise-steps";
}

void measure_sizes(const BatchSetup& setup, const Progress& progress, BatchVerdict& verdict) {
  for (const std::int64_t batch : batch_sizes(setup)) {
    if (!verdict.sizes.empty() && verdict.sizes.back().samples < batch) {
      verdict.end = fmt::format("the training set has {}", telemetry::counted(verdict.sizes.back().samples, "sample"));
      return;
    }
    const std::int64_t memory = predicted_memory(verdict.sizes, batch);
    if (memory > kMemoryShare * setup.memory_limit) {
      verdict.end = fmt::format("{} samples would take about {} a rank, of {}", batch, byte_count(memory),
                                byte_count(setup.memory_limit));
      return;
    }
    verdict.sizes.push_back(try_batch(setup, batch, micro_batches_for(setup, batch), progress));
    if (!verdict.sizes.back().failure.empty()) {
      verdict.end = fmt::format("{} samples do not train: {}", batch, verdict.sizes.back().failure);
      return;
    }
  }
}

void measure_micro_batches(const BatchSetup& setup, const Progress& progress, BatchVerdict& verdict) {
  const BatchRow& best = verdict.sizes[verdict.best_size];
  std::vector<std::int64_t> counts;
  for (std::int64_t micro_batches = std::max(1, setup.probes.ranks); micro_batches <= best.batch; micro_batches *= 2) {
    if (best.batch % micro_batches == 0) counts.push_back(micro_batches);
  }
  // Those around the job's own.
  const auto own = std::lower_bound(counts.begin(), counts.end(), best.micro_batches) - counts.begin();
  const auto first = std::max<std::ptrdiff_t>(0, own - kMostMicroBatchCounts / 2);
  for (auto i = first; i < std::min(std::ssize(counts), first + kMostMicroBatchCounts); ++i) {
    const std::int64_t micro_batches = counts[i];
    verdict.micro_batches.push_back(
        micro_batches == best.micro_batches ? best : try_batch(setup, best.batch, micro_batches, progress));
    verdict.micro_batches.back().time.reset();
  }
  std::vector<double> rates;
  for (const BatchRow& row : verdict.micro_batches) rates.push_back(row.samples_per_second);
  verdict.best_micro_batches = first_of_fastest(rates);
}

}  // namespace

std::vector<std::int64_t> batch_sizes(const BatchSetup& setup) {
  std::vector<std::int64_t> sizes;
  std::int64_t first = setup.batch;
  while (first % 2 == 0 && first / 2 >= setup.smallest) first /= 2;
  for (std::int64_t batch = first; batch <= setup.largest; batch *= 2) sizes.push_back(batch);
  return sizes;
}

std::int64_t micro_batches_for(const BatchSetup& setup, std::int64_t batch) {
  const std::int64_t of_micro_batch = setup.batch / setup.micro_batches;
  std::int64_t micro_batches = std::max<std::int64_t>(batch / of_micro_batch, setup.probes.ranks);
  while (micro_batches < batch && batch % micro_batches != 0) ++micro_batches;
  return std::min(micro_batches, batch);
}

std::int64_t predicted_memory(const std::vector<BatchRow>& rows, std::int64_t batch) {
  if (rows.size() < 2) return 0;
  const BatchRow &last = rows.back(), &before = rows[rows.size() - 2];
  if (last.peak_memory == 0 || before.peak_memory == 0) return 0;
  const double of_sample =
      std::max(0.0, static_cast<double>(last.peak_memory - before.peak_memory) / (last.batch - before.batch));
  return last.peak_memory + static_cast<std::int64_t>(of_sample * (batch - last.batch));
}

int rank_sizes(std::vector<BatchRow>& rows, const std::optional<double>& noise) {
  std::vector<double> rates;
  for (const BatchRow& row : rows) {
    const double steps = noise ? steps_factor(row.batch, *noise) : 0;
    const bool trained = row.failure.empty() && row.step_seconds > 0;
    rates.push_back(!trained ? 0 : noise ? 1 / (steps * row.step_seconds) : row.samples_per_second);
  }
  if (noise && !rates.empty()) {
    const double best = *std::max_element(rates.begin(), rates.end());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rates[i] > 0) rows[i].time = best / rates[i];
    }
  }
  return first_of_fastest(rates);
}

BatchVerdict tune_batch(const BatchSetup& setup, const Progress& progress) {
  BatchVerdict verdict;
  measure_sizes(setup, progress, verdict);
  measure_noise(setup, progress, verdict);
  verdict.best_size = rank_sizes(verdict.sizes, verdict.noise ? verdict.noise->samples : std::nullopt);
  if (verdict.best_size >= 0) measure_micro_batches(setup, progress, verdict);
  return verdict;
}

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
