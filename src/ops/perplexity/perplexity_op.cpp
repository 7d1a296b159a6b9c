// perplexity: e to the mean negative log likelihood of the target class; a metric.
#include "lockstep/op.hpp"
#include "ops/cross_entropy/cross_entropy_cpu.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_sample.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

OpDef make_perplexity() {
  OpDef op;
  op.name = "perplexity";
  op.doc = "e to the mean cross entropy without label smoothing";
  op.kind = OpKind::metric;
  op.attributes = {ignored_index_attribute()};
  op.min_inputs = op.max_inputs = 2;
  op.differentiable = false;
  op.exponential = true;
  op.higher_is_better = false;
  op.constant_inputs = {0, 1};
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) {
    return classes_signature("perplexity", inputs);
  };
  op.cost = elementwise_cost<20, 0>;
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) { return make_log_loss_cpu(request, 0); };
  return op;
}

}  // namespace lockstep::ops
