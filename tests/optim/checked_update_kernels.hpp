// The update's kernels as those of a FakeGpu: grids on the CPU, which tell the fake what they read and write.
#pragma once

#include <initializer_list>

#include "device/fake_gpu.hpp"
#include "optim/update_kernels.hpp"

namespace lockstep::optim {

using device::kernel_reads;
using device::kernel_writes;

class CheckedUpdateKernels final : public UpdateKernels {
 public:
  void put(GpuQueue* queue, std::int64_t n, const GatherBody& body) const override {
    const std::int64_t parts = n / exec::GpuTensors::kPart;
    kernel_reads(queue, body.parts, parts);
    for (const UpdatePart* part = body.parts; part < body.parts + parts; ++part) {
      kernel_reads(queue, body.uses + part->use, part->uses);
      for (int use = 0; use < part->uses; ++use) kernel_reads(queue, body.uses[part->use + use], part->elements);
    }
    kernel_writes(queue, body.gradient, n);
    if (body.overflow != nullptr) kernel_writes(queue, body.overflow, 1);
    grids_.put(queue, n, body);
  }
  void put(GpuQueue* queue, std::int64_t chunks, const SquaresBody& body) const override {
    kernel_reads(queue, body.chunks, chunks);
    for (const NormChunk* chunk = body.chunks; chunk < body.chunks + chunks; ++chunk) {
      const bool together = !chunk->order.orders_differ();
      const std::int64_t reads = together ? 1 : chunk->elements, of_read = together ? chunk->elements : 1;
      for (std::int64_t i = 0; i < reads; ++i) kernel_reads(queue, body.gradient + chunk->place(i), of_read);
    }
    kernel_writes(queue, body.lanes, chunks * SquaresBody::kLanes);
    kernel_writes(queue, body.squares, chunks);
    grids_.put(queue, chunks, body);
  }
  void put(GpuQueue* queue, std::int64_t sums, const SumSquaresBody& body) const override {
    kernel_reads(queue, body.terms.x, body.blocks.rows);
    kernel_writes(queue, body.to, sums);
    grids_.put(queue, sums, body);
  }
  void put(GpuQueue* queue, std::int64_t one, const ClipBody& body) const override {
    kernel_reads(queue, body.square, 1);
    kernel_writes(queue, body.verdict, 1);
    grids_.put(queue, one, body);
  }
  void put(GpuQueue* queue, std::int64_t n, const SgdPlainBody& body) const override { update(queue, n, body, {}); }
  void put(GpuQueue* queue, std::int64_t n, const SgdMomentumBody& body) const override {
    update(queue, n, body, {body.momentum});
  }
  void put(GpuQueue* queue, std::int64_t n, const AdamBody& body) const override {
    update(queue, n, body, {body.first, body.second});
  }
  void put(GpuQueue* queue, std::int64_t n, const BlendBody& body) const override {
    const std::int64_t parts = n / exec::GpuTensors::kPart;
    kernel_reads(queue, body.parts, parts);
    for (const StatePart* part = body.parts; part < body.parts + parts; ++part)
      kernel_reads(queue, part->sum, part->elements);
    if (body.overflow != nullptr) kernel_reads(queue, body.overflow, 1);
    kernel_writes(queue, body.state, n);
    grids_.put(queue, n, body);
  }

 private:
  template <class Body>
  void update(GpuQueue* queue, std::int64_t n, const Body& body, std::initializer_list<float*> states) const {
    kernel_reads(queue, body.of.parts, n / exec::GpuTensors::kPart);
    if (body.of.clip != nullptr) kernel_reads(queue, body.of.clip, 1);
    if (body.of.overflow != nullptr) kernel_reads(queue, body.of.overflow, 1);
    kernel_writes(queue, body.of.gradient, n);
    kernel_writes(queue, body.of.parameter, n);
    for (float* state : states) kernel_writes(queue, state, n);
    for (std::int64_t p = 0; p < n / exec::GpuTensors::kPart; ++p) {
      if (const UpdatePart& part = body.of.parts[p]; part.copy != nullptr)
        kernel_writes(queue, part.copy, part.elements);
    }
    grids_.put(queue, n, body);
  }
  GridUpdateKernels<device::HostGrid> grids_;
};

}  // namespace lockstep::optim
