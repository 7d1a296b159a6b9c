#include "step/optim/gpu_other_parts.hpp"

namespace lockstep::optim {

GpuOtherParts::GpuOtherParts(OtherParts& parts, const Program& program, const comm::GradientBuckets& buckets,
                             device::Gpu& gpu, device::Gpu::Stream stream, const comm::GpuAllReduce& reducer)
    : parts_(parts), gpu_(gpu), stream_(stream), copied_(gpu.make_event()) {
  for (const OtherParts::SharedWeight& weight : parts.shared()) {
    for (const OtherParts::Use& use : weight.uses) {
      if (!use.own) continue;
      const comm::GradientBuckets::Slot& place = buckets.slots[use.number];
      const std::size_t elements = program.slots[use.number].elements;
      own_sums_[use.number] = {reducer.sum_at(place.bucket, place.offset), elements,
                               device::PinnedBlock(gpu, elements * sizeof(float))};
    }
  }
  for (const std::vector<float>& sum : parts.sums()) sums_.push_back(make_copy(sum.size() * sizeof(float)));
}

std::size_t GpuOtherParts::bytes(const OtherParts& parts) {
  std::size_t sum = 0;
  for (const std::vector<float>& floats : parts.sums()) sum += floats.size() * sizeof(float);
  return sum;
}

GpuOtherParts::Copy GpuOtherParts::make_copy(std::size_t bytes) const {
  return {bytes, device::PinnedBlock(gpu_, bytes), device::GpuBlock(gpu_, bytes)};
}

void GpuOtherParts::copy_out(const device::PinnedBlock& pinned, const void* from, std::size_t bytes) const {
  if (bytes > 0) gpu_.copy_out(stream_, pinned.get(), static_cast<const std::byte*>(from), bytes);
}

void GpuOtherParts::copy_in(const Copy& copy, const void* from) const {
  if (copy.bytes == 0) return;
  gpu_.fill(copy.pinned.get(), static_cast<const std::byte*>(from), copy.bytes);
  gpu_.copy_in(stream_, copy.memory.get(), copy.pinned.get(), copy.bytes);
}

void GpuOtherParts::exchange(std::uint64_t step) {
  if (parts_.shared().empty()) return;
  for (const auto& [slot, sum] : own_sums_) copy_out(sum.pinned, sum.on_gpu, sum.elements * sizeof(float));
  gpu_.record(copied_, stream_);
  gpu_.wait(copied_);
  for (const auto& [slot, sum] : own_sums_) gpu_.reads(sum.pinned.get(), sum.elements * sizeof(float));
  parts_.exchange(step, [&](std::size_t slot) {
    const OwnSum& sum = own_sums_.at(slot);
    return std::span(sum.pinned.as<const float>(), sum.elements);
  });
  for (std::size_t i = 0; i < sums_.size(); ++i) copy_in(sums_[i], parts_.sum(i));
}

}  // namespace lockstep::optim
