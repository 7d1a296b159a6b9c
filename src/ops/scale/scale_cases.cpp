#include "ops/activation_case.hpp"

namespace lockstep::ops {

OpCases make_scale_cases() {
  return {"scale",
          [](const ReferenceCall& call) {
            const auto factor = static_cast<double>(static_cast<float>(call.attributes.number("factor")));
            return elementwise_reference(call, [factor](double x) { return factor * x; });
          },
          activation_cases(Attributes({{"factor", -0.3}}))};
}

}  // namespace lockstep::ops
