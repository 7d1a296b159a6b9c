#include "step/exec/micro_batch.hpp"

#include <algorithm>

namespace lockstep::exec {

namespace {

std::vector<AlignedBytes> memory_of(const std::vector<PartLinks::Link>& links) {
  std::vector<AlignedBytes> memory;
  for (const auto& link : links) memory.emplace_back(std::max<std::size_t>(link.bytes, 1));
  return memory;
}

std::vector<const void*> addresses(const std::vector<AlignedBytes>& memory) {
  std::vector<const void*> list;
  for (const AlignedBytes& bytes : memory) list.push_back(bytes.data());
  return list;
}

}  // namespace

CpuMicroBatch::CpuMicroBatch(const ProgramSetup& setup, MicroBatchRunner& runner)
    : runner_(runner),
      arena_(MicroBatchRunner::arena_bytes(setup.program)),
      values_(memory_of(setup.links().received)),
      gradients_(memory_of(setup.links().arrivals)),
      values_at_(addresses(values_)),
      gradients_at_(addresses(gradients_)),
      parameters_(setup.program, setup.part != nullptr) {}

void CpuMicroBatch::begin_pass(const MicroBatchCall& call, int /*wave*/) {
  parameters_.begin({call.model.fetched, call.context.step, call.trace, call.track});
}

MicroBatchOperands CpuMicroBatch::operands(const MicroBatchCall& call) const {
  const GradientTarget* const target = call.gradients;
  return {.inputs = call.inputs.tensors,
          .model = call.model,
          .context = &call.context,
          .step = call.context.step,
          .loss_scale = target == nullptr || target->loss_scale == 1 ? nullptr : &target->loss_scale,
          .received = values_at_,
          .arrived = gradients_at_};
}

}  // namespace lockstep::exec
