#include "exec/cpu_worker.hpp"

namespace lockstep::exec {

void CpuWorker::run(const ShardCall& call) {
  runner_.time_kernels(call.kernel_seconds);
  const ShardBinding binding{.inputs = call.inputs.tensors,
                             .parameters = call.parameters,
                             .states = call.states,
                             .slots = slots_,
                             .step = &call.step};
  if (call.sink == nullptr) {
    runner_.run(
        binding, [](std::size_t) {}, [](std::size_t) {});
    return;
  }
  // Buckets are opened when their first slot is about to be written and handed over when their last one is.
  const auto& buckets = call.layout->buckets;
  std::size_t opened = 0, closed = 0;
  const auto open = [&](std::size_t i) {
    const auto slots_after = program_.instructions[i].slots_done;
    for (; opened < buckets.size() && buckets[opened].first_slot < slots_after; ++opened) {
      const comm::Leaf leaf = call.sink->leaf(static_cast<int>(opened));
      for (auto s = buckets[opened].first_slot; s < buckets[opened].last_slot; ++s) {
        const auto slot = static_cast<std::size_t>(s);
        slots_[slot] = {leaf.memory + call.layout->slots[slot].offset, leaf.add};
      }
    }
  };
  const auto close = [&](std::size_t i) {
    const auto slots_done = program_.instructions[i].slots_done;
    for (; closed < buckets.size() && buckets[closed].last_slot <= slots_done; ++closed) {
      call.sink->ready(static_cast<int>(closed));
    }
  };
  runner_.run(binding, open, close);
}

}  // namespace lockstep::exec
