#include "ops/class_metric_reference.hpp"

namespace lockstep::ops {

OpCases make_top5_cases() {
  return {"top5", [](const ReferenceCall& call) { return class_metric_reference(call, 5); }, class_metric_cases()};
}

}  // namespace lockstep::ops
