// GpuUpdater's part for optimizers with steps of whole matrices. A rank writes what it has of their directions, gets
// the rest from the other ranks, and makes the steps of all matrices that it updates a part of.
#include <algorithm>

#include "device/cpu/gemm.hpp"
#include "optim/gpu_update_memory.hpp"
#include "optim/gpu_updater.hpp"

namespace lockstep::optim {

static_assert(device::kGemmDepth == device::kFusedTerms, "products of matrices add as gemm does");

MatrixChunk GpuUpdater::matrix_chunk(std::size_t number, const NormChunk& at, float* direction) const {
  const auto [parameter, first, elements] = chunks_[number];
  MatrixChunk chunk{.of = measured_chunk(number, at), .direction = direction};
  const exec::LowPrecisionWeights& copies = parameters_->copies();
  if (copies.at(parameter) == nullptr) return chunk;
  const exec::GpuTensors& block = parameters_->parameters();
  chunk.low_precision = copies.type(parameter);
  chunk.copy = reinterpret_cast<std::uint16_t*>(copies.at(parameter)) + block.offset(parameter, first) -
               block.start(parameter) - first;
  return chunk;
}

void GpuUpdater::make_matrix_tables(const std::vector<NormChunk>& chunks) {
  MatrixBlocks& blocks = matrices_.emplace();
  const std::size_t bytes = static_cast<std::size_t>(matrix_elements()) * sizeof(float);
  blocks.directions = device::GpuBlock(gpu_, bytes);
  blocks.scratch = device::GpuBlock(gpu_, matrix_scratch_bytes(graph_, optimizer_));
  gpu_.clear(parameters_->stream(), blocks.directions.get(), bytes);  // where the first update is skipped
  std::vector<float*> directions(uses_.size());
  std::vector<bool> is_own(uses_.size());
  for (const std::size_t i : own_chunks_) is_own[chunks_[i].parameter] = true;
  auto* next = blocks.directions.as<float>();
  for (std::size_t p = 0; p < uses_.size(); ++p) {
    if (!is_matrix(p)) continue;
    const auto [rows, columns] = matrix_sizes(p);
    directions[p] = next;
    next += rows * columns;
    if (is_own[p]) blocks.own.emplace_back(p, MatrixOnGpu{directions[p], rows, columns, blocks.scratch.get()});
    if (slices_ == nullptr) continue;
    for (const auto& [extent, owner] : slices_->owned()[p]) {
      blocks.owned.push_back({owner, directions[p] + extent.begin, extent.end - extent.begin});
    }
  }
  std::vector<MatrixChunk> own;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    float* const direction = directions[chunks_[own_chunks_[i]].parameter];
    if (direction != nullptr) own.push_back(matrix_chunk(own_chunks_[i], chunks[i], direction));
  }
  blocks.chunks = table(std::as_bytes(std::span(own)));
  blocks.chunk_count = std::ssize(own);
}

void GpuUpdater::launch_matrices(GpuStream* stream, const UpdateOperands& of, const UpdateScalars& scalars) {
  MatrixBlocks& blocks = *matrices_;
  MatrixOperands operands{of, blocks.chunks.as<MatrixChunk>()};
  for_each_group(scalars, [&](std::int32_t group, const Attributes& settings, const UpdateStep& step) {
    operands.update.group = group;
    kernels_->launch_directions(stream, blocks.chunk_count, operands, optimizer_.name, settings, step);
  });
  if (!blocks.owned.empty()) {
    reducer_.broadcast(blocks.owned, parameters_->stream());
    gpu_.record(done_, parameters_->stream());
    reducer_.wait_for(done_, "all-gather of directions", "directions of matrices");
  }
  for (const auto& [parameter, matrix] : blocks.own) {
    if (is_frozen(parameter, scalars.update)) continue;
    kernels_->launch_transform(stream, matrix, optimizer_.name, groups_.settings(groups_.of(parameter)));
  }
  for_each_group(scalars, [&](std::int32_t group, const Attributes& settings, const UpdateStep& step) {
    operands.update.group = group;
    kernels_->launch_matrix_steps(stream, blocks.chunk_count, operands, optimizer_.name, settings, step);
  });
}

}  // namespace lockstep::optim
