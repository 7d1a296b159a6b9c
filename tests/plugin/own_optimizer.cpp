// A plugin whose optimizer GPUs do not compute.
#include <lockstep/plugin.hpp>

void lockstep::add_plugin(Registries& registries) {
  OptimizerDef own;
  own.name = "own";
  own.doc = "gradient descent";
  own.update = [](const Attributes& /*settings*/, const UpdateStep& step) -> ParameterUpdate {
    return [rate = static_cast<float>(step.learning_rate)](const ParameterRun& run) {
      for (std::size_t i = 0; i < run.parameter.size(); ++i) run.parameter[i] -= rate * run.gradient[i];
    };
  };
  registries.optimizers.add(std::move(own));
}
