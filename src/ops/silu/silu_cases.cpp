#include "ops/activation_case.hpp"

namespace lockstep::ops {

OpCases make_silu_cases() {
  return {"silu",
          [](const ReferenceCall& call) {
            return elementwise_reference(call, [](double x) { return x / (1 + std::exp(-x)); });
          },
          activation_cases()};
}

}  // namespace lockstep::ops
