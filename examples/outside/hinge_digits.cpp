// Trains the embedded digits with a loss and a metric that lockstep does not know: once alone, once on two ranks.
#include <lockstep/error.hpp>
#include <lockstep/trainer.hpp>

#include <cstdio>

#include "hinge.hpp"

namespace {

lockstep::TrainResult train(int ranks, const lockstep::Registries& registries) {
  const lockstep::Job job =
      lockstep::load_job("",
                         {"data.train.digits=2048", "data.validation.digits={count: 256, first: 2048}", "epochs=2",
                          "checkpoint=never", "loss=hinge", "metrics=[clear_margin]"},
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
    registries.ops.add(make_hinge());
    registries.ops.add(make_clear_margin());
    const auto alone = train(1, registries), two = train(2, registries);
    std::printf("clear margin %.3f, loss %.3f\n", alone.metrics.at("clear_margin"), alone.metrics.at("loss"));
    std::printf("1 rank   %s\n2 ranks  %s\n", alone.parameters_sha256.c_str(), two.parameters_sha256.c_str());
    return alone.parameters_sha256 == two.parameters_sha256 && alone.metrics.at("clear_margin") >= 0.7 ? 0 : 1;
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "hinge_digits: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
