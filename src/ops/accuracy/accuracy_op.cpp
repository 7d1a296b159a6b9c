// accuracy: the share of rows whose best class is the target's; a metric.
#include "ops/class_metric.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

OpDef make_accuracy() {
  return class_metric("accuracy", "share of samples (or tokens) whose best class is the target's",
                      [](const KernelRequest& request) { return make_class_metric_cpu(request, 1); });
}

}  // namespace lockstep::ops
