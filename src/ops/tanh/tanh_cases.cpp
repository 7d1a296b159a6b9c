#include "ops/activation_case.hpp"

namespace lockstep::ops {

OpCases make_tanh_cases() {
  return {"tanh",
          [](const ReferenceCall& call) { return elementwise_reference(call, [](double x) { return std::tanh(x); }); },
          activation_cases()};
}

}  // namespace lockstep::ops
