// CpuUpdater: the update on this rank's CPU workers, one chunk of a parameter at a time: all chunks, or those that the
// rank owns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "comm/reduce/gradient_reducer.hpp"
#include "comm/transport/topology.hpp"
#include "device/row_blocks.hpp"
#include "step/exec/worker_pool.hpp"
#include "step/optim/updater.hpp"

namespace lockstep::optim {

class CpuUpdater final : public Updater {
 public:
  /// Reducer and pool must outlive it.
  CpuUpdater(const UpdaterSetup& setup, const comm::GradientReducer& reducer, exec::WorkerPool& pool)
      : Updater(setup), reducer_(reducer), pool_(pool), squares_(chunks_.size()), finite_(chunks_.size(), 1) {
    if (group_ != nullptr) hosts_.emplace(group_->topology());
    const std::ptrdiff_t chunks = all_chunks();
    square_levels_.resize(device::scratch_rows(chunks));
  }

  void begin(const Model& model) override;
  UpdateResult update(Model& model, double count, const UpdateScalars& scalars) override;
  void swap_average(Model& model, std::uint64_t step) override;
  exec::ModelValues values(const Model& model) const override;
  [[nodiscard]] const exec::TensorBlock& gradient() override;

 private:
  /// How sums become gradients.
  struct Scaling {
    float divisor = 1;  ///< the count of samples, times the loss scale
    float clip = 1;
    std::int64_t update = 0;  ///< the optimizer's count: gradients of groups that are frozen in it are 0
  };
  /// Computes the gradient of a chunk.
  void gather(std::size_t index, const Scaling& scaling, float* out) const;
  using Gradient = std::array<float, comm::kChunkElements>;
  template <class Functor>
  void for_each_own_chunk(const Functor& functor) const;
  const float* sum_of(const Use& use) const;
  [[nodiscard]] bool overflowed(std::uint64_t step);
  /// functor(number of the chunk, its ParameterRun), with the gradient that is clipped.
  template <class Functor>
  void for_each_own_run(const Model& model, const Functor& functor) const;
  /// The root of the sum of chunks' squares.
  [[nodiscard]] double norm_of(std::span<const double> squares);
  [[nodiscard]] double norm(std::uint64_t step);
  /// The chunk's part of its matrix's step; empty: it has none.
  std::span<const float> step_of(const Chunk& chunk, const exec::TensorBlock& steps, std::int64_t update) const;
  /// By parameter. Collective where ranks divide the chunks.
  [[nodiscard]] std::vector<float> trust_ratios(const Model& model, const UpdateScalars& scalars,
                                                const exec::TensorBlock& steps);
  /// By parameter, the steps of the elements that this rank updates. Collective.
  [[nodiscard]] exec::TensorBlock matrix_steps(const Model& model, const UpdateScalars& scalars);
  /// Memory for directions, and for the steps that are made of them in place.
  exec::TensorBlock make_steps() const;
  /// Makes the step of the matrix in place.
  void transform(const Model& model, std::size_t parameter, const MatrixStep& how, std::span<float> matrix) const;
  /// Those that this update makes.
  std::vector<MatrixTransfer> taken(std::vector<MatrixTransfer> transfers, std::int64_t update) const;
  void update_states(Model& model) const;

  const comm::GradientReducer& reducer_;
  exec::WorkerPool& pool_;
  std::optional<comm::Hosts> hosts_;   // of the group
  std::vector<double> squares_;        // by chunk
  std::vector<double> square_levels_;  // scratch for their sum
  std::vector<std::uint8_t> finite_;   // by chunk: whether all its values are finite
  Scaling scaling_;                    // of the last update
};

}  // namespace lockstep::optim
