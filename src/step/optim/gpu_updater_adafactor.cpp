// GpuUpdater's part for adafactor, whose states are of other shapes than their parameters. Kernels read the gradient of
// a matrix where it is; or a copy, if it is in another order than the model's, or ranks divide it: then each gets all
// of it, and makes the moments of all matrices.
#include "core/round_up.hpp"
#include "step/optim/adafactor_step_kernels.hpp"
#include "step/optim/gpu_update_memory.hpp"
#include "step/optim/gpu_updater.hpp"

namespace lockstep::optim {

namespace {

/// What a matrix needs besides its gradient and its moments.
struct MatrixMemory {
  float* copy = nullptr;   ///< of the gradient, if there is one
  double* sums = nullptr;  ///< of tiles
  float* divisor = nullptr;
  std::size_t bytes = 0;

  /// `memory`: null if only the bytes are wanted.
  MatrixMemory(std::byte* memory, std::int64_t rows, std::int64_t columns, bool copies) {
    const auto place = [&]<class T>(T*& at, std::int64_t count) {
      at = memory == nullptr ? nullptr : reinterpret_cast<T*>(memory + bytes);
      bytes += round_up(count * sizeof(T), std::size_t{64});
    };
    place(copy, copies ? rows * columns : 0);
    place(sums, sums_of_tiles(rows, columns));
    place(divisor, 1);
  }
};

void add_tiles(const AdafactorMatrix& of, std::int32_t number, std::vector<AdafactorTile>& tiles,
               std::vector<MomentStrip>& strips) {
  const std::int64_t columns = of.columns.value();
  for (std::int64_t row = 0; row < of.rows; row += kFactoredTile) {
    for (std::int64_t column = 0; column < columns; column += kFactoredTile) tiles.push_back({row, column, number});
  }
  for (std::int64_t row = 0; row < of.rows; row += kFactoredLanes) strips.push_back({row, number, false});
  for (std::int64_t column = 0; column < columns; column += kFactoredLanes) strips.push_back({column, number, true});
}

}  // namespace

std::size_t adafactor_bytes(const Graph& graph, const OptimizerDef& optimizer, bool is_divided) {
  std::size_t bytes = 0;
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const Value& value = graph.at(graph.parameters[p]);
    if (value.frozen || !makes_whole_step(optimizer, value)) continue;
    const auto [rows, columns] = matrix_sizes(value);
    bytes += MatrixMemory(nullptr, rows, columns, copies_gradient(graph, p, is_divided)).bytes;
  }
  return bytes;
}

AdafactorMatrix GpuUpdater::adafactor_matrix(std::size_t parameter, std::byte*& memory) const {
  const auto [rows, columns] = matrix_sizes(parameter);
  const bool copies = copies_gradient(graph_, parameter, slices_ != nullptr);
  const MatrixMemory at(memory, rows, columns, copies);
  memory += at.bytes;
  return {.gradient = copies ? at.copy : device_gradient_->at(parameter),
          .is_copy = copies,
          .group = static_cast<std::int32_t>(groups_.of(parameter)),
          .rows = rows,
          .columns = Divisor(columns),
          .row_sums = at.sums,
          .column_sums = at.sums + divide_up(columns, kFactoredTile) * rows,
          .row_moments = optimizer_state_[1]->at(parameter),
          .column_moments = optimizer_state_[2]->at(parameter),
          .divisor = at.divisor};
}

AdafactorChunk GpuUpdater::adafactor_chunk(std::size_t number, const NormChunk& at,
                                           const AdafactorMatrix* matrix) const {
  const auto [parameter, first, elements] = chunks_[number];
  const exec::GpuTensors& moments = *optimizer_state_[0];
  float* const gradient = matrix != nullptr ? matrix->gradient : device_gradient_->data() + at.tensor;
  return {.of = matrix_chunk(number, at, gradient),
          .moments = matrix != nullptr ? nullptr : moments.data() + moments.offset(parameter, first) - first,
          .matrix = 0,
          .number = static_cast<std::int32_t>(parameter)};
}

void GpuUpdater::make_adafactor_tables(const std::vector<NormChunk>& chunks) {
  AdafactorBlocks& blocks = adafactor_.emplace();
  const std::size_t bytes = adafactor_bytes(graph_, optimizer_, slices_ != nullptr);
  blocks.memory = device::GpuBlock(gpu_, bytes);
  if (bytes > 0) gpu_.clear(parameters_->stream(), blocks.memory.get(), bytes);  // where the first update is skipped
  std::vector<AdafactorMatrix> matrices;
  std::vector<AdafactorTile> tiles;
  std::vector<MomentStrip> strips;
  std::vector<std::size_t> number_of(uses_.size());
  std::byte* next = blocks.memory.get();
  for (std::size_t p = 0; p < uses_.size(); ++p) {
    if (!is_matrix(p)) continue;
    number_of[p] = matrices.size();
    const AdafactorMatrix& matrix = matrices.emplace_back(adafactor_matrix(p, next));
    blocks.has_copies = blocks.has_copies || matrix.is_copy;
    add_tiles(matrix, number_of[p], tiles, strips);
    if (slices_ == nullptr) continue;
    for (const auto& [extent, owner] : slices_->owned()[p]) {
      blocks.owned.push_back({owner, matrix.gradient + extent.begin, extent.end - extent.begin});
    }
  }
  std::vector<AdafactorChunk> own;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::size_t parameter = chunks_[own_chunks_[i]].parameter;
    const std::size_t number = is_matrix(parameter) ? number_of[parameter] : matrices.size();
    own.push_back(adafactor_chunk(own_chunks_[i], chunks[i], number < matrices.size() ? &matrices[number] : nullptr));
    own.back().matrix = number;
  }
  blocks.matrix_count = std::ssize(matrices);
  blocks.tile_count = std::ssize(tiles);
  blocks.strip_count = std::ssize(strips);
  matrices.emplace_back();  // of vectors
  blocks.matrices = table(std::as_bytes(std::span(matrices)));
  blocks.tiles = table(std::as_bytes(std::span(tiles)));
  blocks.strips = table(std::as_bytes(std::span(strips)));
  blocks.chunks = table(std::as_bytes(std::span(own)));
  blocks.lanes = device::GpuBlock(gpu_, own.size() * 2 * kFactoredLanes * sizeof(double));
}

void GpuUpdater::launch_adafactor(GpuStream* stream, UpdateOperands of, const UpdateScalars& scalars) {
  AdafactorBlocks& blocks = *adafactor_;
  const auto chunk_count = std::ssize(own_chunks_);
  const auto* const chunks = blocks.chunks.as<AdafactorChunk>();
  const auto launch_groups = [&](const auto& launch) {
    for_each_group(scalars, [&](std::int32_t group, const Attributes& settings, const UpdateStep& step) {
      of.group = group;
      launch(AdafactorOperands{of, Adafactor(settings, step, true), blocks.matrices.as<AdafactorMatrix>()});
    });
  };
  if (blocks.has_copies) {
    launch_groups([&](const AdafactorOperands& operands) {
      kernels_->launch(stream, chunk_count, CopyGradientFunctor{operands, chunks});
    });
  }
  if (!blocks.owned.empty()) {
    reducer_.broadcast(blocks.owned, parameters_->stream());
    gpu_.record(done_, parameters_->stream());
    reducer_.wait_for(done_, "all-gather of gradients", "gradients of matrices");
  }
  launch_groups([&](const AdafactorOperands& operands) {
    kernels_->launch(stream, blocks.tile_count, TileSquaresFunctor{operands, blocks.tiles.as<AdafactorTile>()});
    kernels_->launch(stream, blocks.strip_count, MatrixMomentsFunctor{operands, blocks.strips.as<MomentStrip>()});
    kernels_->launch(stream, blocks.matrix_count, RowMeanFunctor{operands});
    kernels_->launch(
        stream, chunk_count,
        StepSquaresFunctor{operands, chunks, blocks.lanes.as<double>(), trust_->parameter_squares.as<double>(),
                           trust_->direction_squares.as<double>()});
  });
  TrustOperands ratios = gathered_squares(scalars.step);
  of.trust = ratios.trust;
  launch_groups([&](const AdafactorOperands& operands) {
    ratios.group = of.group;
    kernels_->launch_trust(stream, static_cast<std::int64_t>(trust_->tensor_count), ratios, operands.formula);
  });
  launch_groups([&](const AdafactorOperands& operands) {
    kernels_->launch(stream, chunk_count, AdafactorUpdateFunctor{operands, chunks});
  });
}

}  // namespace lockstep::optim
