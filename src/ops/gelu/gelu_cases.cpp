#include "ops/activation_case.hpp"

namespace lockstep::ops {

namespace {

double exact(double x) {
  return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
}

}  // namespace

OpCases make_gelu_cases() {
  std::vector<OpCase> cases = activation_cases({}, "tanh_");
  for (auto& the_case : activation_cases(Attributes({{"approximate", std::string("none")}}), "exact_")) {
    cases.push_back(the_case);
  }
  return {"gelu",
          [](const ReferenceCall& call) {
            return elementwise_reference(call, call.attributes.text("approximate") == "none" ? exact : gelu_reference);
          },
          cases};
}

}  // namespace lockstep::ops
