#include "ops/activation_case.hpp"

namespace lockstep::ops {

OpCases make_sigmoid_cases() {
  return {"sigmoid",
          [](const ReferenceCall& call) {
            return elementwise_reference(call, [](double x) { return 1 / (1 + std::exp(-x)); });
          },
          activation_cases()};
}

}  // namespace lockstep::ops
