// Board: what a run shows in TensorBoard, on rank 0: its events, and at times its model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "exec/parameters.hpp"
#include "exec/worker_pool.hpp"
#include "input/prepared_data.hpp"
#include "observe/rank_context.hpp"
#include "telemetry/tensorboard.hpp"

namespace lockstep::observe {

class Board final : public events::Sink {
 public:
  /// What is referred to must outlive the board.
  Board(const RankContext& run, const input::PreparedData& data, const Graph& graph)
      : run_(run), data_(data), graph_(graph) {}

  /// Before the first step: makes the file and writes what does not change, unless an earlier start has: the job, the
  /// graph, hyper-parameters and a sheet of inputs. `steps` are done already; `steps_per_epoch` gives spans of the job
  /// their length. Throws Error(cannot_create).
  void start(std::int64_t steps, std::int64_t steps_per_epoch);
  void event(const events::Event& event) override;

  /// Whether the job asks for the model at this step: then show() follows.
  [[nodiscard]] bool shows(std::int64_t step) const { return histogram_period_ != 0 && step % histogram_period_ == 0; }
  /// Histograms of weights and gradients, and the first filters.
  void show(std::int64_t step, const exec::TensorBlock& parameters, const exec::TensorBlock& gradients,
            exec::WorkerPool& pool);

 private:
  void write_job();
  void write_inputs(std::int64_t steps, std::int64_t steps_per_epoch);

  RankContext run_;
  const input::PreparedData& data_;
  const Graph& graph_;
  std::int64_t histogram_period_ = 0;  // steps; 0: never
  std::unique_ptr<telemetry::TensorBoard> board_;
};

}  // namespace lockstep::observe
