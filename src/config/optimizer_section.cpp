// optimizer: sgd | adam | adamw
#include "config/scalar_rules.hpp"
#include "config/sections.hpp"

namespace lockstep::config {
namespace {

constexpr const char* kDecayDoc = "this times the parameter is added to its gradient";
constexpr const char* kDecoupledDoc = "this times the rate is the share of a parameter that each step takes off";
constexpr const char* kDecayAllDoc = "decay norms and biases too";

Section<OptimizerOptions> sgd() {
  return Section<OptimizerOptions>()
      .field("momentum", &OptimizerOptions::momentum, number().at_least(0).below(1), "share of the last update kept")
      .field("nesterov", &OptimizerOptions::nesterov, boolean(), "look ahead by one update")
      .field("weight_decay", &OptimizerOptions::weight_decay, number().at_least(0), kDecayDoc)
      .field("decay_all", &OptimizerOptions::decay_all, boolean(), kDecayAllDoc)
      .check({"momentum", "nesterov"}, [](const OptimizerOptions& sgd, const Scope& scope) {
        if (sgd.nesterov && sgd.momentum == 0) {
          scope.problem("nesterov", "expected false, since momentum is 0, found true; set momentum, say to 0.9");
        }
      });
}

Section<OptimizerOptions> adam(double weight_decay, const char* decay_doc) {
  return Section<OptimizerOptions>()
      .initially([weight_decay](OptimizerOptions& adam) { adam.weight_decay = weight_decay; })
      .field("beta1", &OptimizerOptions::beta1, number().at_least(0).below(1), "decay of the gradient's running mean")
      .field("beta2", &OptimizerOptions::beta2, number().at_least(0).below(1), "decay of its square's running mean")
      .field("epsilon", &OptimizerOptions::epsilon, number().above(0), "added to the denominator")
      .field("weight_decay", &OptimizerOptions::weight_decay, number().at_least(0), decay_doc)
      .field("decay_all", &OptimizerOptions::decay_all, boolean(), kDecayAllDoc);
}

}  // namespace

Is<OptimizerOptions> optimizer_section() {
  return Section<OptimizerOptions>()
      .option("sgd", &OptimizerOptions::kind, sgd(), "stochastic gradient descent; decay is added to the gradient")
      .option("adam", &OptimizerOptions::kind, adam(0, kDecayDoc), "Adam; decay is added to the gradient")
      .option("adamw", &OptimizerOptions::kind, adam(0.01, kDecoupledDoc), "Adam with decoupled weight decay");
}

}  // namespace lockstep::config
