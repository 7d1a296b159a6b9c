// Trains the embedded digits with an optimizer and a schedule that lockstep does not know: once alone, once on two
// ranks. A job file may name them like any other; here overrides of the default job do.
#include <lockstep/error.hpp>
#include <lockstep/trainer.hpp>

#include <cstdio>

#include "lion.hpp"
#include "polynomial.hpp"

namespace {

lockstep::TrainResult train(int ranks, const lockstep::Registries& registries) {
  const lockstep::Job job = lockstep::load_job(
      "",
      {"data.train.digits=2048", "data.validation.digits={count: 256, first: 2048}", "epochs=2", "checkpoint=never",
       "optimizer={lion: {weight_decay: 0.1}}", "learning_rate={peak: 0.001, schedule: {polynomial: 1.5}}"},
      registries);
  lockstep::TrainResult result;
  lockstep::run_in_threads(ranks, [&](lockstep::Communicator& communicator) {
    const auto mine = lockstep::train_job(job, communicator, registries);
    if (communicator.rank() == 0) result = mine;
  });
  return result;
}

}  // namespace

int main() {
  try {
    lockstep::Registries registries = lockstep::Registries::built_in();
    registries.optimizers.add(make_lion());
    registries.schedules.add(make_polynomial());
    const auto alone = train(1, registries), two = train(2, registries);
    std::printf("accuracy %.3f after %lld steps\n", alone.metrics.at("accuracy"), static_cast<long long>(alone.steps));
    std::printf("1 rank   %s\n2 ranks  %s\n", alone.parameters_sha256.c_str(), two.parameters_sha256.c_str());
    return alone.parameters_sha256 == two.parameters_sha256 && alone.metrics.at("accuracy") >= 0.9 ? 0 : 1;
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "lion_digits: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
