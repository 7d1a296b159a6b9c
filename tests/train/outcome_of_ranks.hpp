// The outcome of a job on a number of ranks, which are threads of this process: what must be the same on any number.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "lockstep/trainer.hpp"
#include "run/train/catalogue.hpp"

namespace lockstep {

/// A residual net with batch norm, dropout, augmentation, clipping and AdamW.
inline constexpr const char* kResidualJob = R"(
job:
  name: bits
  seed: 3
  model:
    layers:
      - {conv: {filters: 8, kernel: 3, bias: false}, name: stem}
      - batch_norm
      - {relu: {}, name: start}
      - {conv: {filters: 8, kernel: 3, bias: false}, block: residual}
      - {batch_norm: {}, block: residual}
      - {add: {inputs: [previous, start]}, block: residual}
      - {relu: {}, block: residual}
      - {max_pool: {kernel: 2}, block: head}
      - {flatten: {}, block: head}
      - {dropout: 0.2, block: head}
      - {linear: {features: 10}}
  data:
    train: {digits: {count: 160}}
    validation: {digits: {count: 50, first: 100000}}
    augment: [{crop: {padding: 2}}]
  batch_size: 32
  micro_batches: 8
  steps: 7
  metrics: [accuracy]
  optimizer: {adamw: {weight_decay: 0.01}}
  learning_rate: {peak: 0.01, warmup: 2 steps, schedule: {cosine: {final: 0}}}
  clip_norm: 0.5
  evaluate: {every: 4 steps}
  checkpoint: never
  bucket_bytes: 8192
)";

struct Outcome {
  std::string parameters;
  std::map<std::string, double> metrics;
  double loss = 0;
  bool operator==(const Outcome&) const = default;
};

inline void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << outcome.parameters << " " << outcome.loss;
}

/// Expects the same outcome on all ranks. `hosts`: those that they claim to be on; empty: all on one.
inline Outcome run_job(const std::string& text, int ranks, const std::vector<std::string>& overrides,
                       std::vector<int> hosts = {}, TrainerOptions options = {}) {
  const Registries registries = Registries::built_in();
  const JobFile job = config::load_text(text, "job.yaml", overrides, train::catalogue_of(registries), false);
  std::mutex mutex;
  std::vector<Outcome> outcomes;
  run_in_threads(
      ranks,
      [&](Communicator& communicator) {
        const TrainResult result = train_job(job, communicator, registries, options);
        const std::lock_guard lock(mutex);
        outcomes.push_back({result.parameters_sha256, result.metrics, result.loss});
      },
      std::move(hosts));
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome, outcomes.front()) << "ranks disagree";
  return outcomes.front();
}

}  // namespace lockstep
