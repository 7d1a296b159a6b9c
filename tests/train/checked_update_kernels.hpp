// The update's kernels as those of a FakeGpu: grids on the CPU, which tell the fake what they read and write.
#pragma once

#include <initializer_list>

#include "backend/fake_gpu.hpp"
#include "train/update_kernels.hpp"

namespace lockstep::train {

class CheckedUpdateKernels final : public UpdateKernels {
 public:
  void put(GpuQueue* queue, std::int64_t n, const GatherBody& body) const override {
    const std::int64_t parts = n / exec::GpuTensors::kPart;
    read(queue, body.parts, parts);
    for (const UpdatePart* part = body.parts; part < body.parts + parts; ++part) {
      read(queue, body.uses + part->use, part->uses);
      for (int use = 0; use < part->uses; ++use) read(queue, body.uses[part->use + use], part->elements);
    }
    write(queue, body.gradient, n);
    if (body.overflow != nullptr) write(queue, body.overflow, 1);
    grids_.put(queue, n, body);
  }
  void put(GpuQueue* queue, std::int64_t chunks, const SquaresBody& body) const override {
    read(queue, body.chunks, chunks);
    for (std::int64_t c = 0; c < chunks; ++c)
      read(queue, body.gradient + body.chunks[c].first, body.chunks[c].elements);
    write(queue, body.lanes, chunks * SquaresBody::kLanes);
    write(queue, body.squares, chunks);
    grids_.put(queue, chunks, body);
  }
  void put(GpuQueue* queue, std::int64_t one, const ClipBody& body) const override {
    read(queue, body.squares, body.chunks);
    write(queue, body.verdict, 1);
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
    read(queue, body.parts, parts);
    for (const StatePart* part = body.parts; part < body.parts + parts; ++part) read(queue, part->sum, part->elements);
    if (body.overflow != nullptr) read(queue, body.overflow, 1);
    write(queue, body.state, n);
    grids_.put(queue, n, body);
  }

 private:
  static backend::FakeGpu& fake(GpuQueue* queue) { return dynamic_cast<backend::FakeGpu&>(queue->gpu); }
  template <class Element>
  static void read(GpuQueue* queue, const Element* memory, std::int64_t count) {
    if (count == 0) return;
    fake(queue).kernel_reads(queue->stream, backend::bytes_of(memory),
                             static_cast<std::size_t>(count) * sizeof(Element));
  }
  template <class Element>
  static void write(GpuQueue* queue, Element* memory, std::int64_t count) {
    if (count == 0) return;
    fake(queue).kernel_writes(queue->stream, backend::bytes_of(memory),
                              static_cast<std::size_t>(count) * sizeof(Element));
  }
  template <class Body>
  void update(GpuQueue* queue, std::int64_t n, const Body& body, std::initializer_list<float*> states) const {
    read(queue, body.of.parts, n / exec::GpuTensors::kPart);
    if (body.of.clip != nullptr) read(queue, body.of.clip, 1);
    if (body.of.overflow != nullptr) read(queue, body.of.overflow, 1);
    write(queue, body.of.gradient, n);
    write(queue, body.of.parameter, n);
    for (float* state : states) write(queue, state, n);
    for (std::int64_t p = 0; p < n / exec::GpuTensors::kPart; ++p) {
      if (const UpdatePart& part = body.of.parts[p]; part.copy != nullptr) write(queue, part.copy, part.elements);
    }
    grids_.put(queue, n, body);
  }
  GridUpdateKernels<backend::HostGrid> grids_;
};

}  // namespace lockstep::train
