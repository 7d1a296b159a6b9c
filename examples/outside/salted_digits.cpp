// Trains the embedded digits with an augmentation step that lockstep does not know: once alone, once on two ranks.
// A job file may name it like any other; here overrides of the default job do.
#include <lockstep/error.hpp>
#include <lockstep/trainer.hpp>

#include <cstdio>

#include "salt.hpp"

namespace {

std::string train(int ranks, const lockstep::Registries& registries) {
  const lockstep::JobFile job =
      lockstep::load_job("",
                         {"data.train.digits=512", "data.validation.digits={count: 128, first: 512}", "steps=10",
                          "checkpoint=never", "learning_rate=0.002", "data.augment=[{salt: 0.05}]"},
                         registries);
  std::string parameters;
  lockstep::run_in_threads(ranks, [&](lockstep::Communicator& communicator) {
    const auto result = lockstep::train_job(job, communicator, registries);
    if (communicator.rank() == 0) parameters = result.parameters_sha256;
  });
  return parameters;
}

}  // namespace

int main() {
  try {
    lockstep::Registries registries = lockstep::Registries::built_in();
    registries.augmentations.add(make_salt());
    const std::string alone = train(1, registries), two = train(2, registries);
    std::printf("1 rank   %s\n2 ranks  %s\n", alone.c_str(), two.c_str());
    return alone == two ? 0 : 1;
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "salted_digits: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
