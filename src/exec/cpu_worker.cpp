#include "exec/cpu_worker.hpp"

namespace lockstep::exec {

void CpuWorker::run(const ShardCall& call) {
  runner_.time_kernels(call.kernel_seconds);
  BucketWalk walk(program_, call, buckets_);
  const auto nothing = [](const comm::GradientBuffer& /*buffer*/) {};
  const ShardBinding binding{.inputs = call.inputs.tensors,
                             .parameters = call.parameters,
                             .states = call.states,
                             .slots = buckets_.slots,
                             .step = &call.step,
                             .step_of_kernels = &call.step,
                             .loss_scale = call.loss_scale};
  (void)runner_.begin();
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    walk.before(i, nothing);
    runner_.run(i, binding);
    walk.after(i, nothing);
  }
}

}  // namespace lockstep::exec
