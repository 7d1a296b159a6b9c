// The update kernels as kernels of a FakeGpu: grids on the CPU, which report to the fake what they read and write.
#pragma once

#include "device/fake_gpu.hpp"
#include "optim/grid_update_kernels.hpp"

namespace lockstep::optim {

using device::kernel_reads;
using device::kernel_writes;

class CheckedUpdateKernels final : public UpdateKernels {
 public:
  void launch(GpuStream* stream, std::int64_t n, const GatherFunctor& functor) const override {
    const std::int64_t parts = n / exec::GpuTensors::kPart;
    kernel_reads(stream, functor.parts, parts);
    for (const UpdatePart* part = functor.parts; part < functor.parts + parts; ++part) {
      kernel_reads(stream, functor.uses + part->use, part->uses);
      for (int use = 0; use < part->uses; ++use) kernel_reads(stream, functor.uses[part->use + use], part->elements);
    }
    kernel_writes(stream, functor.gradient, n);
    if (functor.overflow != nullptr) kernel_writes(stream, functor.overflow, 1);
    grids_.launch(stream, n, functor);
  }
  void launch(GpuStream* stream, std::int64_t chunks, const SquaresFunctor& functor) const override {
    kernel_reads(stream, functor.chunks, chunks);
    for (const NormChunk* chunk = functor.chunks; chunk < functor.chunks + chunks; ++chunk) {
      const bool together = !chunk->order.orders_differ();
      const std::int64_t reads = together ? 1 : chunk->elements, of_read = together ? chunk->elements : 1;
      for (std::int64_t i = 0; i < reads; ++i) kernel_reads(stream, functor.gradient + chunk->place(i), of_read);
    }
    kernel_writes(stream, functor.lanes, chunks * SquaresFunctor::kLanes);
    kernel_writes(stream, functor.squares, chunks);
    grids_.launch(stream, chunks, functor);
  }
  void launch(GpuStream* stream, std::int64_t sums, const SumSquaresFunctor& functor) const override {
    kernel_reads(stream, functor.terms.x, functor.blocks.rows);
    kernel_writes(stream, functor.to, sums);
    grids_.launch(stream, sums, functor);
  }
  void launch(GpuStream* stream, std::int64_t one, const ClipFunctor& functor) const override {
    kernel_reads(stream, functor.square, 1);
    kernel_writes(stream, functor.verdict, 1);
    grids_.launch(stream, one, functor);
  }
  void launch(GpuStream* stream, std::int64_t n, const BlendFunctor& functor) const override {
    const std::int64_t parts = n / exec::GpuTensors::kPart;
    kernel_reads(stream, functor.parts, parts);
    for (const StatePart* part = functor.parts; part < functor.parts + parts; ++part)
      kernel_reads(stream, part->sum, part->elements);
    if (functor.overflow != nullptr) kernel_reads(stream, functor.overflow, 1);
    kernel_writes(stream, functor.state, n);
    grids_.launch(stream, n, functor);
  }
  [[nodiscard]] bool has_optimizer(const std::string& name) const override { return grids_.has_optimizer(name); }
  void launch_optimizer(GpuStream* stream, std::int64_t n, const UpdateOperands& of, const std::string& name,
                        const Attributes& settings, const UpdateStep& step) const override {
    kernel_reads(stream, of.parts, n / exec::GpuTensors::kPart);
    if (of.clip != nullptr) kernel_reads(stream, of.clip, 1);
    if (of.overflow != nullptr) kernel_reads(stream, of.overflow, 1);
    kernel_writes(stream, of.gradient, n);
    for (std::int32_t s = 0; s < of.state_count; ++s) kernel_writes(stream, of.states[s], n);
    for (std::int64_t p = 0; p < n / exec::GpuTensors::kPart; ++p) {
      const UpdatePart& part = of.parts[p];
      if (part.parameter != nullptr) kernel_writes(stream, part.parameter, part.elements);
      if (part.copy != nullptr) kernel_writes(stream, part.copy, part.elements);
    }
    grids_.launch_optimizer(stream, n, of, name, settings, step);
  }

 private:
  GridUpdateKernels<device::HostGrid> grids_;
};

}  // namespace lockstep::optim
