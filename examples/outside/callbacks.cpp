// Callbacks: the learning rate is halved if an evaluation's loss does not fall. The run ends when it reaches an
// accuracy, if a step's loss is NaN, or if the mean loss of an epoch is no better than that of the one before.
#include <lockstep/callback.hpp>

#include <cmath>
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

class StopWhenDone final : public Callback {
 public:
  void after_step(TrainingState& state) override {
    if (std::isnan(state.loss)) state.stop();
    sum_ += state.loss;
    ++steps_;
  }
  void after_epoch(TrainingState& state) override {
    const double mean = sum_ / steps_;
    if (mean >= last_) state.stop();
    last_ = mean;
    sum_ = 0;
    steps_ = 0;
  }

 private:
  double sum_ = 0, last_ = std::numeric_limits<double>::infinity();
  int steps_ = 0;
};

}  // namespace

int main() {
  return run_example([] {
    const Registries registries = Registries::built_in();
    const JobFile job = digits(registries, {"epochs=20", "metrics=[accuracy]"});
    return same_bits([&](Communicator& communicator) {
      HalveOnPlateau halve;  // each rank has its own; all see the same numbers
      StopAtAccuracy stop(0.55);
      StopWhenDone done;
      return train_job(job, communicator, registries, {.callbacks = {&halve, &stop, &done}});
    });
  });
}
