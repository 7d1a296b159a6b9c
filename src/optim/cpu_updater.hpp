// CpuUpdater: the update by the workers of this rank, a chunk of a parameter at a time.
#pragma once

#include <vector>

#include "comm/reduce/gradient_reducer.hpp"
#include "device/row_blocks.hpp"
#include "exec/worker_pool.hpp"
#include "optim/updater.hpp"

namespace lockstep::optim {

class CpuUpdater final : public Updater {
 public:
  /// Reducer and pool outlive it.
  CpuUpdater(const UpdaterSetup& setup, const comm::GradientReducer& reducer, exec::WorkerPool& pool)
      : Updater(setup),
        reducer_(reducer),
        pool_(pool),
        squares_(chunks_.size()),
        square_levels_(static_cast<std::size_t>(device::scratch_rows(std::ssize(chunks_)))),
        finite_(chunks_.size(), 1) {}

  UpdateResult update(Model& model, double count, const UpdateScalars& scalars) override;
  [[nodiscard]] const exec::TensorBlock& gradient() override { return gradient_; }

 private:
  void gather(float divisor, std::size_t index);
  [[nodiscard]] bool overflowed() const;
  [[nodiscard]] double norm();
  void update_states(Model& model) const;

  const comm::GradientReducer& reducer_;
  exec::WorkerPool& pool_;
  std::vector<double> squares_;        // by chunk
  std::vector<double> square_levels_;  // of their sum
  std::vector<std::uint8_t> finite_;   // by chunk: whether all of it is
};

}  // namespace lockstep::optim
