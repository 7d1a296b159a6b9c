// A custom optimizer: Signum, sign descent with momentum (Bernstein and others, "signSGD: Compressed
// Optimisation for Non-Convex Problems", ICML 2018).
#include <lockstep/optimizer.hpp>

#include "example.hpp"

namespace {

using namespace lockstep;

float sign(float value) {
  return static_cast<float>(value > 0) - static_cast<float>(value < 0);
}

/// Values that are equal for all elements are computed here, once per update.
ParameterUpdate update(const Attributes& settings, const UpdateStep& step) {
  const auto rate = static_cast<float>(step.learning_rate), kept = static_cast<float>(settings.number("momentum"));
  const auto weight_decay = static_cast<float>(settings.number("weight_decay"));
  return [=](const ParameterRun& run) {
    float* p = run.parameter.data();
    float* momentum = run.states[0];
    const float decay = run.decay ? weight_decay : 0.0F;
    for (std::size_t i = 0; i < run.parameter.size(); ++i) {
      momentum[i] = kept * momentum[i] + (1 - kept) * run.gradient[i];
      p[i] -= rate * (sign(momentum[i]) + decay * p[i]);
    }
  };
}

AttributeSpec number_from_0(const std::string& name, double value, const std::string& doc) {
  return {.name = name, .kind = AttributeKind::number, .doc = doc, .default_value = value, .minimum = 0};
}

OptimizerDef signum() {
  OptimizerDef signum;
  signum.name = "signum";
  signum.doc = "the sign of the gradient's running mean";
  signum.attributes = {
      number_from_0("momentum", 0.9, "decay of the gradient's running mean"),
      number_from_0("weight_decay", 0, "this times the rate is the share of a parameter that each step takes off"),
  };
  signum.states = [](const Attributes&) { return std::vector<std::string>{"momentum"}; };
  signum.update = update;
  return signum;
}

}  // namespace

int main() {
  return run_example([] {
    Registries registries = Registries::built_in();
    registries.optimizers.add(signum());
    const JobFile job = digits(registries, {"optimizer={signum: {weight_decay: 0.1}}", "learning_rate=0.001"});
    return same_bits([&](Communicator& communicator) { return train_job(job, communicator, registries); });
  });
}
