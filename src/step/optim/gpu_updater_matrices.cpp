// GpuUpdater's part for optimizers with steps of whole matrices. A rank writes what it has of their directions, gets
// those of the matrices whose steps it makes, and then the steps of what it updates (MatrixMakers).
#include "device/cpu/gemm.hpp"
#include "lockstep/error.hpp"
#include "step/optim/gpu_updater.hpp"

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

std::vector<float*> GpuUpdater::place_directions(float* memory) const {
  std::vector<float*> directions(uses_.size());
  const auto held = makers_.held(rank_, owned());
  for (std::size_t p = 0; p < held.size(); ++p) {
    if (held[p].empty()) continue;
    LOCKSTEP_CHECK(held[p].size() == 1, "a rank has one slice of a parameter");
    const auto [begin, end] = held[p].front();
    directions[p] = memory - begin;
    memory += end - begin;
  }
  return directions;
}

MatrixMoves GpuUpdater::moves(const std::vector<MatrixTransfer>& transfers,
                              const std::vector<float*>& directions) const {
  MatrixMoves moves;
  for (const auto& [from, to, parameter, extent] : transfers) {
    float* const memory = directions[parameter] + extent.begin;
    const std::int64_t count = extent.end - extent.begin;
    if (to == MatrixTransfer::kAll) {
      moves.to_all.push_back({from, memory, count});
    } else if (from == rank_) {
      moves.sends.push_back({to, memory, count});
    } else if (to == rank_) {
      moves.receives.push_back({from, memory, count});
    }
  }
  return moves;
}

void GpuUpdater::make_matrix_tables(const std::vector<NormChunk>& chunks) {
  MatrixBlocks& blocks = matrices_.emplace();
  const std::size_t bytes = matrix_elements() * sizeof(float);
  blocks.directions = device::GpuBlock(gpu_, bytes);
  blocks.scratch = device::GpuBlock(gpu_, makers_.gpu_scratch(rank_));
  gpu_.clear(parameters_->stream(), blocks.directions.get(), bytes);  // where the first update is skipped
  const std::vector<float*> directions = place_directions(blocks.directions.as<float>());
  for (const std::size_t p : makers_.made_by(rank_)) {
    const auto [rows, columns] = matrix_sizes(p);
    blocks.made.emplace_back(p, MatrixOnGpu{directions[p], rows, columns, blocks.scratch.get()});
  }
  blocks.directions_to_makers = moves(makers_.directions(owned()), directions);
  blocks.steps_from_makers = moves(makers_.steps(owned()), directions);
  std::vector<MatrixChunk> own;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    float* const direction = directions[chunks_[own_chunks_[i]].parameter];
    if (direction != nullptr) own.push_back(matrix_chunk(own_chunks_[i], chunks[i], direction));
  }
  blocks.chunks = table(std::as_bytes(std::span(own)));
  blocks.chunk_count = std::ssize(own);
}

void GpuUpdater::move(const MatrixMoves& moves, const char* name, const char* awaited) {
  if (moves.to_all.empty() && moves.sends.empty() && moves.receives.empty()) return;
  const device::Gpu::Stream stream = parameters_->stream();
  if (!moves.to_all.empty()) reducer_.broadcast(moves.to_all, stream);
  if (!moves.sends.empty() || !moves.receives.empty()) reducer_.send_receive(moves.sends, moves.receives, stream);
  gpu_.record(done_, stream);
  reducer_.wait_for(done_, name, awaited);
}

void GpuUpdater::launch_matrices(GpuStream* stream, const UpdateOperands& of, const UpdateScalars& scalars) {
  MatrixBlocks& blocks = *matrices_;
  MatrixOperands operands{of, blocks.chunks.as<MatrixChunk>()};
  for_each_group(scalars, [&](std::int32_t group, const Attributes& settings, const UpdateStep& step) {
    operands.update.group = group;
    kernels_->launch_directions(stream, blocks.chunk_count, operands, optimizer_.name, settings, step);
  });
  move(blocks.directions_to_makers, "directions of matrices", "directions of matrices");
  for (const auto& [parameter, matrix] : blocks.made) {
    if (is_frozen(parameter, scalars.update)) continue;
    kernels_->launch_transform(stream, matrix, optimizer_.name, groups_.settings(groups_.of(parameter)));
  }
  move(blocks.steps_from_makers, "steps of matrices", "steps of matrices");
  for_each_group(scalars, [&](std::int32_t group, const Attributes& settings, const UpdateStep& step) {
    operands.update.group = group;
    kernels_->launch_matrix_steps(stream, blocks.chunk_count, operands, optimizer_.name, settings, step);
  });
}

}  // namespace lockstep::optim
