// The gathering kernels as those of a FakeGpu: grids on the CPU, which tell the fake what they read and write.
#pragma once

#include "device/fake_gpu.hpp"
#include "input/gather_kernels.hpp"

namespace lockstep::input {

class CheckedGatherKernels final : public GatherKernels {
 public:
  void put(GpuQueue* queue, std::int64_t n, const GatherImagesBody& body) const override {
    const std::int64_t samples = n / (body.out_height * body.out_width);
    const std::int64_t bytes = body.height * body.width * body.channels;
    read_samples(queue, samples, body.ids, body.images, bytes);
    device::kernel_reads(queue, body.moves, samples * body.steps);
    device::kernel_reads(queue, body.factors, body.channels);
    device::kernel_reads(queue, body.shifts, body.channels);
    device::kernel_writes(queue, body.out, n * body.channels);
    grids_.put(queue, n, body);
  }
  void put(GpuQueue* queue, std::int64_t n, const GatherBytesBody& body) const override {
    read_samples(queue, n / body.bytes, body.ids, body.samples, body.bytes);
    device::kernel_writes(queue, body.out, n);
    grids_.put(queue, n, body);
  }

 private:
  template <class Element>
  static void read_samples(GpuQueue* queue, std::int64_t count, const std::int64_t* ids, const Element* samples,
                           std::int64_t each) {
    device::kernel_reads(queue, ids, count);
    for (std::int64_t i = 0; i < count; ++i) device::kernel_reads(queue, samples + ids[i] * each, each);
  }
  GridGatherKernels<device::HostGrid> grids_;
};

}  // namespace lockstep::input
