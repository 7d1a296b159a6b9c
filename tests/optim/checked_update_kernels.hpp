// The update kernels as kernels of a FakeGpu: grids on the CPU, which report to the fake what they read and write.
#pragma once

#include <algorithm>
#include <utility>

#include "device/fake_gpu.hpp"
#include "step/optim/grid_update_kernels.hpp"

namespace lockstep::optim {

using device::kernel_reads;
using device::kernel_writes;

class CheckedUpdateKernels final : public UpdateKernels {
 public:
  void launch(GpuStream* stream, std::int64_t n, const GatherPartsFunctor& functor) const override {
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
  void launch(GpuStream* stream, std::int64_t n, const AverageFunctor& functor) const override {
    reads_parameters(stream, functor.parts, n);
    if (functor.overflow != nullptr) kernel_reads(stream, functor.overflow, 1);
    kernel_writes(stream, functor.average, n);
    grids_.launch(stream, n, functor);
  }
  void launch(GpuStream* stream, std::int64_t n, const SwapFunctor& functor) const override {
    kernel_writes(stream, functor.average, n);
    writes_parameters(stream, functor.parts, n);
    grids_.launch(stream, n, functor);
  }
  void launch_optimizer(GpuStream* stream, std::int64_t n, const UpdateOperands& of, const std::string& name,
                        const Attributes& settings, const UpdateStep& step) const override {
    if (of.clip != nullptr) kernel_reads(stream, of.clip, 1);
    if (of.overflow != nullptr) kernel_reads(stream, of.overflow, 1);
    kernel_writes(stream, of.gradient, n);
    for (std::int32_t s = 0; s < of.state_count; ++s) kernel_writes(stream, of.states[s], n);
    for (std::int64_t p = 0; of.trust != nullptr && p < n / exec::GpuTensors::kPart; ++p) {
      if (of.parts[p].uses > 0) kernel_reads(stream, of.trust + of.parts[p].tensor, 1);
    }
    writes_parameters(stream, of.parts, n);
    grids_.launch_optimizer(stream, n, of, name, settings, step);
  }
  void launch_measure(GpuStream* stream, std::int64_t chunks, const MeasureOperands& of, const std::string& name,
                      const Attributes& settings, const UpdateStep& step) const override {
    kernel_reads(stream, of.chunks, chunks);
    if (of.update.clip != nullptr) kernel_reads(stream, of.update.clip, 1);
    if (of.update.overflow != nullptr) kernel_reads(stream, of.update.overflow, 1);
    for (const MeasuredChunk* chunk = of.chunks; chunk < of.chunks + chunks; ++chunk) {
      const auto [first, count] = places(chunk->at);
      kernel_reads(stream, chunk->parameter + (first - chunk->at.tensor), count);
      kernel_writes(stream, of.update.gradient + first, count);
      for (std::int32_t s = 0; s < of.update.state_count; ++s) {
        kernel_writes(stream, of.update.states[s] + first, count);
      }
    }
    kernel_writes(stream, of.lanes, chunks * 2 * kSquareLanes);
    kernel_writes(stream, of.parameter_squares, chunks);
    kernel_writes(stream, of.direction_squares, chunks);
    grids_.launch_measure(stream, chunks, of, name, settings, step);
  }
  void launch_trust(GpuStream* stream, std::int64_t tensors, const TrustOperands& of, const std::string& name,
                    const Attributes& settings, const UpdateStep& step) const override {
    accesses_trust(stream, tensors, of);
    grids_.launch_trust(stream, tensors, of, name, settings, step);
  }
  void launch_directions(GpuStream* stream, std::int64_t chunks, const MatrixOperands& of, const std::string& name,
                         const Attributes& settings, const UpdateStep& step) const override {
    reads_chunks(stream, chunks, of);
    for (const MatrixChunk* chunk = of.chunks; chunk < of.chunks + chunks; ++chunk) {
      const auto [first, count] = places(chunk->of.at);
      kernel_writes(stream, of.update.gradient + first, count);
      kernel_writes(stream, of.update.states[0] + first, count);
      kernel_writes(stream, chunk->direction + chunk->of.at.first, chunk->of.at.elements);
    }
    grids_.launch_directions(stream, chunks, of, name, settings, step);
  }
  void launch_transform(GpuStream* stream, const MatrixOnGpu& of, const std::string& name,
                        const Attributes& settings) const override {
    kernel_writes(stream, of.values, of.rows * of.columns);
    kernel_writes(stream, of.scratch,
                  static_cast<std::int64_t>(NewtonSchulzScratch(nullptr, of.rows, of.columns).bytes));
    grids_.launch_transform(stream, of, name, settings);
  }
  void launch_matrix_steps(GpuStream* stream, std::int64_t chunks, const MatrixOperands& of, const std::string& name,
                           const Attributes& settings, const UpdateStep& step) const override {
    reads_chunks(stream, chunks, of);
    for (const MatrixChunk* chunk = of.chunks; chunk < of.chunks + chunks; ++chunk) {
      const auto [first, count] = places(chunk->of.at);
      kernel_reads(stream, chunk->direction + chunk->of.at.first, chunk->of.at.elements);
      kernel_writes(stream, chunk->of.parameter + (first - chunk->of.at.tensor), count);
      if (chunk->copy != nullptr) kernel_writes(stream, chunk->copy + (first - chunk->of.at.tensor), count);
    }
    grids_.launch_matrix_steps(stream, chunks, of, name, settings, step);
  }
  void launch(GpuStream* stream, std::int64_t chunks, const CopyGradientFunctor& functor) const override {
    reads_operands(stream, functor.of);
    kernel_reads(stream, functor.chunks, chunks);
    for (const AdafactorChunk* chunk = functor.chunks; chunk < functor.chunks + chunks; ++chunk) {
      const AdafactorMatrix& matrix = functor.of.matrices[chunk->matrix];
      kernel_reads(stream, &matrix, 1);
      if (chunk->moments != nullptr || !matrix.is_copy) continue;
      const auto [first, count] = places(chunk->of.of.at);
      kernel_writes(stream, functor.of.update.gradient + first, count);
      kernel_writes(stream, chunk->of.direction + chunk->of.of.at.first, chunk->of.of.at.elements);
    }
    grids_.launch(stream, chunks, functor);
  }
  void launch(GpuStream* stream, std::int64_t tiles, const TileSquaresFunctor& functor) const override {
    reads_operands(stream, functor.of);
    kernel_reads(stream, functor.tiles, tiles);
    for (const AdafactorTile* tile = functor.tiles; tile < functor.tiles + tiles; ++tile) {
      const AdafactorMatrix& matrix = functor.of.matrices[tile->matrix];
      kernel_reads(stream, &matrix, 1);
      if (tile->row > 0 || tile->column > 0) continue;  // the first tile of a matrix stands for all
      const std::int64_t elements = matrix.rows * matrix.columns.value();
      matrix.is_copy ? kernel_reads(stream, matrix.gradient, elements)
                     : kernel_writes(stream, matrix.gradient, elements);
      kernel_writes(stream, matrix.row_sums, sums_of_tiles(matrix.rows, matrix.columns.value()));
    }
    grids_.launch(stream, tiles, functor);
  }
  void launch(GpuStream* stream, std::int64_t strips, const MatrixMomentsFunctor& functor) const override {
    reads_operands(stream, functor.of);
    kernel_reads(stream, functor.strips, strips);
    for (const MomentStrip* strip = functor.strips; strip < functor.strips + strips; ++strip) {
      const AdafactorMatrix& matrix = functor.of.matrices[strip->matrix];
      kernel_reads(stream, &matrix, 1);
      if (strip->first > 0) continue;
      kernel_reads(stream, matrix.row_sums, sums_of_tiles(matrix.rows, matrix.columns.value()));
      kernel_writes(stream, matrix.row_moments, matrix.rows);
      kernel_writes(stream, matrix.column_moments, matrix.columns.value());
    }
    grids_.launch(stream, strips, functor);
  }
  void launch(GpuStream* stream, std::int64_t matrices, const RowMeanFunctor& functor) const override {
    reads_operands(stream, functor.of);
    kernel_reads(stream, functor.of.matrices, matrices);
    for (const AdafactorMatrix* matrix = functor.of.matrices; matrix < functor.of.matrices + matrices; ++matrix) {
      kernel_reads(stream, matrix->row_moments, matrix->rows);
      kernel_writes(stream, matrix->divisor, 1);
    }
    grids_.launch(stream, matrices, functor);
  }
  void launch(GpuStream* stream, std::int64_t chunks, const StepSquaresFunctor& functor) const override {
    reads_operands(stream, functor.of);
    for (const AdafactorChunk* chunk = functor.chunks; chunk < functor.chunks + chunks; ++chunk) {
      reads_chunk(stream, functor.of, *chunk);
      if (chunk->moments == nullptr) continue;
      kernel_writes(stream, chunk->of.direction + chunk->of.of.at.first, chunk->of.of.at.elements);
      kernel_writes(stream, chunk->moments + chunk->of.of.at.first, chunk->of.of.at.elements);
    }
    kernel_writes(stream, functor.lanes, chunks * 2 * kFactoredLanes);
    kernel_writes(stream, functor.parameter_squares, chunks);
    kernel_writes(stream, functor.direction_squares, chunks);
    grids_.launch(stream, chunks, functor);
  }
  void launch_trust(GpuStream* stream, std::int64_t tensors, const TrustOperands& of,
                    const Adafactor& formula) const override {
    accesses_trust(stream, tensors, of);
    grids_.launch_trust(stream, tensors, of, formula);
  }
  void launch(GpuStream* stream, std::int64_t chunks, const AdafactorUpdateFunctor& functor) const override {
    reads_operands(stream, functor.of);
    for (const AdafactorChunk* chunk = functor.chunks; chunk < functor.chunks + chunks; ++chunk) {
      reads_chunk(stream, functor.of, *chunk);
      kernel_reads(stream, functor.of.update.trust + chunk->number, 1);
      const auto [first, count] = places(chunk->of.of.at);
      kernel_writes(stream, chunk->of.of.parameter + (first - chunk->of.of.at.tensor), count);
      if (chunk->of.copy != nullptr) kernel_writes(stream, chunk->of.copy + (first - chunk->of.of.at.tensor), count);
    }
    grids_.launch(stream, chunks, functor);
  }

 private:
  static void accesses_trust(GpuStream* stream, std::int64_t tensors, const TrustOperands& of) {
    kernel_reads(stream, of.tensors, tensors);
    kernel_reads(stream, of.parameter_squares, of.chunks);
    kernel_reads(stream, of.direction_squares, of.chunks);
    kernel_writes(stream, of.levels, 2 * of.chunks);
    for (std::int64_t t = 0; t < tensors; ++t) kernel_writes(stream, of.trust + of.tensors[t].number, 1);
  }
  static void reads_operands(GpuStream* stream, const AdafactorOperands& of) {
    if (of.update.clip != nullptr) kernel_reads(stream, of.update.clip, 1);
    if (of.update.overflow != nullptr) kernel_reads(stream, of.update.overflow, 1);
  }
  static void reads_chunk(GpuStream* stream, const AdafactorOperands& of, const AdafactorChunk& chunk) {
    kernel_reads(stream, &chunk, 1);
    const AdafactorMatrix& matrix = of.matrices[chunk.matrix];
    kernel_reads(stream, &matrix, 1);
    const NormChunk& at = chunk.of.of.at;
    const auto [first, count] = places(at);
    kernel_reads(stream, chunk.of.of.parameter + (first - at.tensor), count);
    kernel_reads(stream, chunk.of.direction + at.first, at.elements);
    if (chunk.moments != nullptr) return kernel_reads(stream, chunk.moments + at.first, at.elements);
    kernel_reads(stream, matrix.row_moments, matrix.rows);
    kernel_reads(stream, matrix.column_moments, matrix.columns.value());
    kernel_reads(stream, matrix.divisor, 1);
  }
  static void reads_chunks(GpuStream* stream, std::int64_t chunks, const MatrixOperands& of) {
    kernel_reads(stream, of.chunks, chunks);
    if (of.update.clip != nullptr) kernel_reads(stream, of.update.clip, 1);
    if (of.update.overflow != nullptr) kernel_reads(stream, of.update.overflow, 1);
  }
  /// First element and count. Of a tensor in another order a chunk is scattered; all between its first and last element
  /// counts.
  static std::pair<std::int64_t, std::int64_t> places(const NormChunk& chunk) {
    std::int64_t first = chunk.place(0), last = first;
    for (std::int64_t i = 1; i < chunk.elements; ++i) {
      first = std::min(first, chunk.place(i));
      last = std::max(last, chunk.place(i));
    }
    return {first, last - first + 1};
  }
  static void reads_parameters(GpuStream* stream, const UpdatePart* parts, std::int64_t n) {
    kernel_reads(stream, parts, n / exec::GpuTensors::kPart);
    for (const UpdatePart* part = parts; part < parts + n / exec::GpuTensors::kPart; ++part) {
      if (part->uses > 0) kernel_reads(stream, part->parameter, part->elements);
    }
  }
  static void writes_parameters(GpuStream* stream, const UpdatePart* parts, std::int64_t n) {
    kernel_reads(stream, parts, n / exec::GpuTensors::kPart);
    for (const UpdatePart* part = parts; part < parts + n / exec::GpuTensors::kPart; ++part) {
      if (part->parameter != nullptr) kernel_writes(stream, part->parameter, part->elements);
      if (part->copy != nullptr) kernel_writes(stream, part->copy, part->elements);
    }
  }

  GridUpdateKernels<device::HostGrid> grids_;
};

}  // namespace lockstep::optim
