// A custom optimizer: Lion (Chen and others, "Symbolic Discovery of Optimization Algorithms", 2023).
#include <lockstep/optimizer.hpp>

#include "example.hpp"

namespace {

using namespace lockstep;

float sign(float value) {
  return static_cast<float>(value > 0) - static_cast<float>(value < 0);
}

/// Values that are equal for all elements are computed here, once per update.
ParameterUpdate update(const Attributes& settings, const UpdateStep& step) {
  const auto rate = static_cast<float>(step.learning_rate);
  const auto beta1 = static_cast<float>(settings.number("beta1")), beta2 = static_cast<float>(settings.number("beta2"));
  const auto weight_decay = static_cast<float>(settings.number("weight_decay"));
  return [=](const ParameterRun& run) {
    float* p = run.parameter.data();
    float* momentum = run.states[0];
    const float decay = run.decay ? weight_decay : 0.0F;
    for (std::size_t i = 0; i < run.parameter.size(); ++i) {
      const float g = run.gradient[i];
      p[i] -= rate * (sign(beta1 * momentum[i] + (1 - beta1) * g) + decay * p[i]);
      momentum[i] = beta2 * momentum[i] + (1 - beta2) * g;
    }
  };
}

AttributeSpec number_from_0(const std::string& name, double value, const std::string& doc) {
  return {.name = name, .kind = AttributeKind::number, .doc = doc, .default_value = value, .minimum = 0};
}

OptimizerDef lion() {
  OptimizerDef lion;
  lion.name = "lion";
  lion.doc = "the sign of a momentum";
  lion.attributes = {
      number_from_0("beta1", 0.9, "share of the momentum in the step"),
      number_from_0("beta2", 0.99, "share of the momentum that is kept"),
      number_from_0("weight_decay", 0, "this times the rate is the share of a parameter that each step takes off"),
  };
  lion.states = [](const Attributes&) { return std::vector<std::string>{"momentum"}; };
  lion.update = update;
  return lion;
}

}  // namespace

int main() {
  return run_example([] {
    Registries registries = Registries::built_in();
    registries.optimizers.add(lion());
    const JobFile job = digits(registries, {"optimizer={lion: {weight_decay: 0.1}}", "learning_rate=0.001"});
    return same_bits([&](Communicator& communicator) { return train_job(job, communicator, registries); });
  });
}
