// The gather kernels as kernels of a FakeGpu: grids on the CPU, which report to the fake what they read and write.
#pragma once

#include "data/input/gather_kernels.hpp"
#include "device/fake_gpu.hpp"

namespace lockstep::input {

class CheckedGatherKernels final : public GatherKernels {
 public:
  void launch(GpuStream* stream, std::int64_t n, const GatherImagesFunctor& functor) const override {
    const std::int64_t samples = n / (functor.out_height * functor.out_width);
    const std::int64_t bytes = functor.height * functor.width * functor.channels;
    read_samples(stream, samples, functor.ids, functor.images, bytes);
    device::kernel_reads(stream, functor.moves, samples * functor.steps);
    device::kernel_reads(stream, functor.factors, functor.channels);
    device::kernel_reads(stream, functor.shifts, functor.channels);
    device::kernel_writes(stream, functor.out, n * functor.channels);
    grids_.launch(stream, n, functor);
  }
  void launch(GpuStream* stream, std::int64_t n, const GatherBytesFunctor& functor) const override {
    read_samples(stream, n / functor.bytes, functor.ids, functor.samples, functor.bytes);
    device::kernel_writes(stream, functor.out, n);
    grids_.launch(stream, n, functor);
  }

 private:
  template <class Element>
  static void read_samples(GpuStream* stream, std::int64_t count, const std::int64_t* ids, const Element* samples,
                           std::int64_t each) {
    device::kernel_reads(stream, ids, count);
    for (std::int64_t i = 0; i < count; ++i) device::kernel_reads(stream, samples + ids[i] * each, each);
  }
  GridGatherKernels<device::HostGrid> grids_;
};

}  // namespace lockstep::input
