#include "step/exec/micro_batch_gradients.hpp"

#include <algorithm>
#include <map>

#include "core/round_up.hpp"
#include "core/spans.hpp"

namespace lockstep::exec {

void MicroBatchGradients::begin(const MicroBatchCall& call) {
  call_ = &call;
  buffers_.clear();
  closed_ = 0;
  seconds_ = 0;
}

std::size_t MicroBatchGradients::end_of_segment(std::size_t first) const {
  const auto& instructions = program_.instructions;
  std::size_t i = first;
  while (i < instructions.size() && !next_ends_with(i)) ++i;
  return std::min(i + 1, instructions.size());
}

bool MicroBatchGradients::next_begins_with(std::size_t instruction) const {
  if (call_->gradients == nullptr) return false;
  const auto& buckets = call_->gradients->buckets.buckets;
  const std::size_t next = buffers_.size();
  return next < buckets.size() && buckets[next].first_slot < program_.instructions[instruction].slots_done;
}

bool MicroBatchGradients::next_ends_with(std::size_t instruction) const {
  if (call_->gradients == nullptr) return false;
  const auto& buckets = call_->gradients->buckets.buckets;
  return closed_ < buckets.size() && buckets[closed_].last_slot <= program_.instructions[instruction].slots_done;
}

const comm::GradientBuffer& MicroBatchGradients::open() {
  const auto& [sink, buckets, micro_batch, loss_scale] = *call_->gradients;
  const comm::GradientBuckets::Bucket& bucket = buckets.buckets[buffers_.size()];
  const comm::GradientBuffer& buffer = buffers_.emplace_back(sink.buffer(micro_batch, buffers_.size()));
  for (std::size_t slot = bucket.first_slot; slot < static_cast<std::size_t>(bucket.last_slot); ++slot) {
    slots_[slot] = {buffer.memory + buckets.slots[slot].offset, buffer.add};
  }
  return buffer;
}

void MicroBatchGradients::hand_over() {
  const int bucket = closed_++;
  const TraceScope span(call_->trace, "hand over", call_->context.step, call_->track, bucket);
  const auto start = Clock::now();
  call_->gradients->sink.ready(call_->gradients->micro_batch, bucket);
  seconds_ += seconds_since(start);
}

comm::GradientBuckets gradient_buckets(const Program& program, std::int64_t bucket_bytes, std::int64_t micro_batches,
                                       bool scattered, std::span<const std::size_t> shared,
                                       const std::vector<bool>& reordered, int equal_slices) {
  std::map<std::int32_t, int> uses;  // of a parameter
  for (const Slot& slot : program.slots) {
    if (slot.kind == Slot::Kind::gradient) ++uses[slot.target];
  }
  std::vector<comm::GradientBuckets::SlotShape> shapes;
  for (const Slot& slot : program.slots) {
    auto& shape = shapes.emplace_back();
    shape.elements = slot.elements;
    if (!scattered || slot.kind != Slot::Kind::gradient) continue;
    const bool is_shared =
        std::find(shared.begin(), shared.end(), static_cast<std::size_t>(slot.target)) != shared.end();
    shape.scattered = !is_shared;
    if (uses[slot.target] > 1) shape.alike = slot.target;
    shape.uncut = !reordered.empty() && reordered.at(slot.target);
  }
  auto buckets = comm::GradientBuckets::of_slots(shapes, bucket_bytes, micro_batches);
  if (equal_slices > 1) buckets.make_slices_equal(shapes, equal_slices);
  return buckets;
}

std::int64_t max_open_elements(const Program& program, const comm::GradientBuckets& buckets) {
  std::size_t opened = 0, closed = 0;
  std::int64_t open = 0, most = 0;
  for (const Instruction& instruction : program.instructions) {
    for (; opened < buckets.buckets.size() && buckets.buckets[opened].first_slot < instruction.slots_done; ++opened) {
      open += buckets.buckets[opened].elements;
    }
    most = std::max(most, open);
    for (; closed < opened && buckets.buckets[closed].last_slot <= instruction.slots_done; ++closed) {
      open -= buckets.buckets[closed].elements;
    }
  }
  return most;
}

std::int64_t scratch_elements(const Program& program, const comm::GradientBuckets& buckets) {
  return whole_lines(std::max(max_open_elements(program, buckets), buckets.max_elements()));
}

}  // namespace lockstep::exec
