// The job of `lockstep train` without a file. examples/digits.yaml is the same text; a test holds them equal.
#include "config/config.hpp"

namespace lockstep::config {

std::string default_job_text() {
  return R"(# Digits that the program draws itself: nothing to download. This is also what `lockstep train` runs
# without a file.
job:
  name: digits
  seed: 1
  model:
    layers:
      - {conv: {filters: 16, kernel: 3}}
      - relu
      - {max_pool: {kernel: 2}}
      - {conv: {filters: 32, kernel: 3}}
      - relu
      - {max_pool: {kernel: 2}}
      - flatten
      - {dropout: 0.2}
      - {linear: {features: 10}}
  data:
    train: {digits: {count: 12000}}
    validation: {digits: {count: 2000, first: 1000000}}
  batch_size: 64
  shards: 8
  epochs: 4
  loss: cross_entropy
  metrics: [accuracy]
  optimizer: {adam: {}}
  learning_rate: {peak: 0.002, warmup: 20 steps, schedule: {cosine: {final: 0}}}
)";
}

}  // namespace lockstep::config
