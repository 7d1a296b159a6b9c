// Callbacks: the learning rate is halved where the loss does not fall, and the run ends at an accuracy.
#include <lockstep/callback.hpp>

#include <limits>

#include "example.hpp"

namespace {

using namespace lockstep;

class HalveOnPlateau final : public Callback {
 public:
  void after_evaluation(TrainingState& state) override {
    const double loss = state.evaluated.at("loss");
    if (loss > 0.95 * best_) state.set_learning_rate_factor(0.5 * state.learning_rate_factor());
    best_ = std::min(best_, loss);
  }

 private:
  double best_ = std::numeric_limits<double>::infinity();
};

class StopAtAccuracy final : public Callback {
 public:
  explicit StopAtAccuracy(double accuracy) : accuracy_(accuracy) {}
  void after_evaluation(TrainingState& state) override {
    if (state.evaluated.at("accuracy") >= accuracy_) state.stop();
  }

 private:
  double accuracy_;
};

}  // namespace

int main() {
  return run_example([] {
    const Registries registries = Registries::built_in();
    const JobFile job = digits(registries, {"epochs=20", "metrics=[accuracy]"});
    return same_bits([&](Communicator& communicator) {
      HalveOnPlateau halve;  // each rank has its own, and all see the same numbers
      StopAtAccuracy stop(0.55);
      return train_job(job, communicator, registries, {.callbacks = {&halve, &stop}});
    });
  });
}
