// The gradients of a shard on their way out: a bucket is opened when its first slot is about to be written, and handed
// over when its last one is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "exec/shard_runner.hpp"
#include "exec/shard_worker.hpp"
#include "graph/program.hpp"

namespace lockstep::exec {

/// A worker's, kept from shard to shard so that a step allocates nothing.
struct BucketMemory {
  std::vector<SlotMemory> slots;              ///< per Program::slots
  std::vector<comm::GradientBuffer> buffers;  ///< by bucket
};

/// For one run of a program; of evaluation it does nothing.
class BucketWalk {
 public:
  BucketWalk(const Program& program, const ShardCall& call, BucketMemory& memory)
      : program_(program), call_(call), memory_(memory) {
    memory_.buffers.clear();
  }

  /// The instruction behind the next one, from `first` on, with which a bucket ends; else the program's end.
  [[nodiscard]] std::size_t end_of_part(std::size_t first) const {
    const auto& instructions = program_.instructions;
    if (call_.sink == nullptr || closed_ == call_.layout->buckets.size()) return instructions.size();
    std::size_t i = first;
    while (i < instructions.size() && instructions[i].slots_done < call_.layout->buckets[closed_].last_slot) ++i;
    return std::min(i + 1, instructions.size());
  }
  /// Those that are open, where instructions may write.
  [[nodiscard]] std::span<const comm::GradientBuffer> open_buffers() const {
    return std::span(memory_.buffers).subspan(closed_, opened_ - closed_);
  }

  /// Before instruction i: opened(buffer) for each bucket that begins with it.
  template <class Opened>
  void before(std::size_t i, const Opened& opened) {
    if (call_.sink == nullptr) return;
    const auto& buckets = call_.layout->buckets;
    const auto slots_after = program_.instructions[i].slots_done;
    for (; opened_ < buckets.size() && buckets[opened_].first_slot < slots_after; ++opened_) {
      const comm::GradientBuffer buffer = call_.sink->buffer(static_cast<int>(opened_));
      for (auto s = buckets[opened_].first_slot; s < buckets[opened_].last_slot; ++s) {
        const auto slot = static_cast<std::size_t>(s);
        memory_.slots[slot] = {buffer.memory + call_.layout->slots[slot].offset, buffer.add};
      }
      opened(buffer);
      memory_.buffers.push_back(buffer);
    }
  }
  /// After it: closing(buffer) for each that ends with it, and then it is handed over.
  template <class Closing>
  void after(std::size_t i, const Closing& closing) {
    if (call_.sink == nullptr) return;
    const auto& buckets = call_.layout->buckets;
    const auto slots_done = program_.instructions[i].slots_done;
    for (; closed_ < buckets.size() && buckets[closed_].last_slot <= slots_done; ++closed_) {
      closing(memory_.buffers[closed_]);
      call_.sink->ready(static_cast<int>(closed_));
    }
  }

 private:
  const Program& program_;
  const ShardCall& call_;
  BucketMemory& memory_;
  std::size_t opened_ = 0, closed_ = 0;
};

}  // namespace lockstep::exec
