// Shared by the examples: a small job on the embedded digits, trained on one rank and on three.
#pragma once

#include <lockstep/error.hpp>
#include <lockstep/trainer.hpp>

#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

/// Same as a job file, so it may name what was added to the registries.
inline lockstep::JobFile digits(const lockstep::Registries& registries, const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides = {"data.train.digits=512",
                                        "data.validation.digits={count: 128, first: 512}",
                                        "model.layers=[flatten, {linear: 32}, relu, {linear: 10}]",
                                        "batch_size=32",
                                        "micro_batches=8",
                                        "epochs=3",
                                        "optimizer=adam",
                                        "learning_rate=0.01",
                                        "checkpoint=never"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return lockstep::load_job("", overrides, registries);
}

/// Calls `train` on one rank, then on each of three, which are threads of this process. Returns main()'s exit code: 0
/// if the bits are the same.
inline int same_bits(const std::function<lockstep::TrainResult(lockstep::Communicator&)>& train) {
  std::string first;
  bool same = true;
  for (const int ranks : {1, 3}) {
    lockstep::run_in_threads(ranks, [&](lockstep::Communicator& communicator) {
      const lockstep::TrainResult result = train(communicator);
      if (communicator.rank() != 0) return;
      std::printf("%d rank%s %s after %lld steps:", ranks, ranks == 1 ? " " : "s", result.parameters_sha256.c_str(),
                  static_cast<long long>(result.steps));
      for (const auto& [name, value] : result.metrics) std::printf(" %s %.4f", name.c_str(), value);
      std::printf("\n");
      if (first.empty()) first = result.parameters_sha256;
      same = same && result.parameters_sha256 == first;
    });
  }
  return same ? 0 : 1;
}

/// The body of main().
inline int run_example(const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return lockstep::exit_code(error);
  }
}
