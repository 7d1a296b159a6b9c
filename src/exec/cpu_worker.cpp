#include "exec/cpu_worker.hpp"

namespace lockstep::exec {

void CpuWorker::run(const ShardCall& call) {
  runner_.time_kernels(call.kernel_seconds);
  BucketWalk walk(program_, call, buckets_);
  const auto nothing = [](const comm::Leaf& /*leaf*/) {};
  runner_.run(
      {.inputs = call.inputs.tensors,
       .parameters = call.parameters,
       .states = call.states,
       .slots = buckets_.slots,
       .step = &call.step},
      [&](std::size_t i) { walk.before(i, nothing); }, [&](std::size_t i) { walk.after(i, nothing); });
}

}  // namespace lockstep::exec
