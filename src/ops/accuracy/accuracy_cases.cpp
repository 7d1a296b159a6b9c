#include "ops/class_metric_reference.hpp"

namespace lockstep::ops {

OpCases make_accuracy_cases() {
  return {"accuracy", [](const ReferenceCall& call) { return class_metric_reference(call, 1); }, class_metric_cases()};
}

}  // namespace lockstep::ops
