// GpuUpdater: the update on the rank's GPU. Parameters, states, the optimizer's state and the gradient are kept there;
// the host's copies are from the last begin() or fetch().
//
// If ranks divide updates (ModelSlices), the optimizer's state and the gradient are those of the rank's own slices.
// Parameters are all there: after an update, each rank gets the new ones from their owners. Or ranks divide them, too:
// then each has its own, and gathers the others' while kernels read them (step/exec/gpu_gathers.hpp).
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "device/gpu/gpu_memory.hpp"
#include "step/exec/gather_layout.hpp"
#include "step/exec/gpu_gathers.hpp"
#include "step/exec/gpu_tensors.hpp"
#include "step/optim/adafactor_kernels.hpp"
#include "step/optim/gpu_chunk_numbers.hpp"
#include "step/optim/gpu_other_parts.hpp"
#include "step/optim/matrix_kernels.hpp"
#include "step/optim/newton_schulz_grid.hpp"
#include "step/optim/trust_kernels.hpp"
#include "step/optim/update_kernels.hpp"
#include "step/optim/updater.hpp"

namespace lockstep::optim {

/// What trust ratios are computed with. The numbers of other ranks' chunks are gathered where ranks divide updates.
struct TrustBlocks {
  device::GpuBlock chunks, tensors, lanes, parameter_squares, direction_squares, levels, ratios;
  std::size_t tensor_count = 0;
  std::optional<GpuChunkNumbers> parameters, directions;
};

/// MatrixTransfers, as the transport takes them.
struct MatrixMoves {
  std::vector<comm::GpuTransport::Owned> to_all;
  std::vector<comm::GpuTransport::Message> sends, receives;
};

/// What steps of whole matrices are made with.
struct MatrixBlocks {
  device::GpuBlock chunks, directions, scratch;
  std::int64_t chunk_count = 0;
  std::vector<std::pair<std::size_t, MatrixOnGpu>> made;  ///< those whose steps this rank makes, with their number
  MatrixMoves directions_to_makers, steps_from_makers;
};

/// What adafactor's steps are made with.
struct AdafactorBlocks {
  device::GpuBlock matrices, tiles, strips, chunks, lanes, memory;
  std::int64_t matrix_count = 0, tile_count = 0, strip_count = 0;
  bool has_copies = false;
  std::vector<comm::GpuTransport::Owned> owned;  ///< runs of copies; none: this rank has all of them
};

class GpuUpdater final : public Updater {
 public:
  /// Gpu and reducer must outlive it.
  GpuUpdater(const UpdaterSetup& setup, device::Gpu& gpu, comm::GpuAllReduce& reducer,
             std::unique_ptr<const UpdateKernels> kernels);
  GpuUpdater(const GpuUpdater&) = delete;
  GpuUpdater& operator=(const GpuUpdater&) = delete;
  ~GpuUpdater() override;

  std::vector<exec::MemoryNeed> memory_needs(const Model& model) const override;
  void begin(const Model& model) override;
  UpdateResult update(Model& model, double count, const UpdateScalars& scalars) override;
  void fetch(Model& model) override;
  void swap_average(Model& model, std::uint64_t step) override;
  exec::ModelValues values(const Model& model) const override {
    return {model.parameters, model.states, exec::GpuParameters::view(parameters_)};
  }
  [[nodiscard]] const exec::TensorBlock& gradient() override;

 private:
  /// Makes the tables that kernels read; called when the reducer knows where its sums are.
  void make_tables();
  /// Those of the gradients' parts; of groups that are frozen in this update of the optimizer, without their sums.
  void make_part_tables(std::int64_t update);
  [[nodiscard]] device::GpuBlock table(std::span<const std::byte> bytes);
  std::vector<UpdatePart> update_parts(std::int64_t update, std::vector<const float*>& uses) const;
  std::vector<StatePart> state_parts() const;
  std::vector<NormChunk> norm_chunks() const;
  /// `number`: of the chunk.
  MeasuredChunk measured_chunk(std::size_t number, const NormChunk& at) const;
  std::vector<MeasuredChunk> measured_chunks(const std::vector<NormChunk>& chunks) const;
  std::vector<TrustedTensor> trusted_tensors() const;
  void make_trust_tables();
  void make_measure_tables(const std::vector<NormChunk>& chunks);
  MatrixChunk matrix_chunk(std::size_t number, const NormChunk& at, float* direction) const;
  void make_matrix_tables(const std::vector<NormChunk>& chunks);
  /// By parameter: where its first element's direction is, or would be.
  std::vector<float*> place_directions(float* memory) const;
  MatrixMoves moves(const std::vector<MatrixTransfer>& transfers, const std::vector<float*>& directions) const;
  void move(const MatrixMoves& moves, const char* name, const char* awaited);
  /// Whether some states are of another shape than their parameters: of what GPUs compute, adafactor's alone.
  bool is_adafactor() const { return static_cast<bool>(optimizer_.state_shape); }
  /// Takes of the memory what it needs.
  AdafactorMatrix adafactor_matrix(std::size_t parameter, std::byte*& memory) const;
  /// `matrix`: null if it is of a vector.
  AdafactorChunk adafactor_chunk(std::size_t number, const NormChunk& at, const AdafactorMatrix* matrix) const;
  void make_adafactor_tables(const std::vector<NormChunk>& chunks);
  /// Whether other ranks update chunks that this one does not.
  bool gathers_numbers() const { return slices_ != nullptr || other_parts_; }
  bool divides_parameters() const { return slices_ != nullptr && slices_->divides_parameters(); }
  exec::GatherLayout gather_layout() const {
    return {graph_, slices_->unit_of(), slices_->owned(), other_parts_.has_value()};
  }
  /// Address of the sum of an element.
  const float* sum_of(const Use& use, std::int64_t element) const;
  /// Runs of the parameters' block, each with the rank that updates it.
  std::vector<comm::GpuTransport::Owned> owned_runs() const;
  /// Gives all ranks the parameters that their owners have updated, and renews their copies.
  void gather_parameters();
  void launch_clipping(GpuStream* stream, std::uint64_t step);
  void launch_optimizer(GpuStream* stream, const UpdateScalars& scalars);
  /// Of an optimizer with a formula.
  void launch_formula(GpuStream* stream, UpdateOperands of, const UpdateScalars& scalars);
  /// Measures all chunks and finds the ratios; afterwards gradients are clipped.
  void launch_trust(GpuStream* stream, UpdateOperands of, const UpdateScalars& scalars);
  /// The squares of all chunks: other ranks' are gathered.
  [[nodiscard]] TrustOperands gathered_squares(std::uint64_t step);
  /// Updates everything.
  void launch_adafactor(GpuStream* stream, UpdateOperands of, const UpdateScalars& scalars);
  /// Updates all matrices.
  void launch_matrices(GpuStream* stream, const UpdateOperands& of, const UpdateScalars& scalars);
  /// launch(number, settings, step), for each group that is not frozen.
  template <class Launch>
  void for_each_group(const UpdateScalars& scalars, const Launch& launch) const {
    for (std::size_t group = 0; group < groups_.count(); ++group) {
      if (groups_.is_frozen(group, scalars.update)) continue;
      launch(static_cast<std::int32_t>(group), groups_.settings(group), step_of(group, scalars));
    }
  }
  [[nodiscard]] UpdateResult read_verdict();

  device::Gpu& gpu_;
  comm::GpuAllReduce& reducer_;
  std::unique_ptr<const UpdateKernels> kernels_;
  std::shared_ptr<exec::GpuParameters> parameters_;
  std::unique_ptr<exec::GpuGathers> gathers_;  // null: all parameters are there
  std::vector<std::unique_ptr<exec::GpuTensors>> optimizer_state_;
  std::unique_ptr<exec::GpuTensors> device_gradient_;
  std::optional<GpuOtherParts> gpu_other_parts_;
  std::optional<GpuChunkNumbers> numbers_;
  std::vector<comm::GpuTransport::Owned> owned_runs_;  // none: this rank updates everything
  device::GpuBlock parts_, uses_table_, state_parts_, chunk_table_, lanes_, squares_, square_levels_, square_, verdict_;
  device::PinnedBlock verdict_on_host_;
  std::optional<TrustBlocks> trust_;
  std::optional<MatrixBlocks> matrices_;
  std::optional<AdafactorBlocks> adafactor_;
  std::size_t frozen_groups_ = 0;  // in parts_
  device::Gpu::Event done_;
};

}  // namespace lockstep::optim
