// top5: the share of rows whose five best classes hold the target's; a metric.
#include "ops/class_metric.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

OpDef make_top5() {
  return class_metric("top5", "share of samples (or tokens) whose five best classes hold the target's",
                      [](const KernelRequest& request) { return make_class_metric_cpu(request, 5); });
}

}  // namespace lockstep::ops
