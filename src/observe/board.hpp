// Board: what a run shows in TensorBoard, on rank 0: its events, and at times its model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/picture.hpp"
#include "exec/parameters.hpp"
#include "exec/worker_pool.hpp"
#include "input/prepared_data.hpp"
#include "lockstep/graph.hpp"
#include "observe/rank_context.hpp"
#include "telemetry/tensorboard.hpp"

namespace lockstep::observe {

/// "block1.conv" -> "block1/conv": TensorBoard folds names at the slash.
[[nodiscard]] std::string path_name(std::string name);

/// Inputs, parameters and states are nodes too, as in the graphs that TensorBoard knows.
[[nodiscard]] std::vector<telemetry::BoardNode> board_nodes(const Graph& graph);

/// A cell a filter, in color where it reads three channels, else its first channel; 0 is the middle gray and the
/// largest weight of the layer black or white. Nothing where the graph has no convolution.
[[nodiscard]] std::optional<data::Picture> first_filters(const Graph& graph, const exec::TensorBlock& parameters);

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
  /// Histograms of weights and gradients, and the first filters. `divided`: of parameters, only the own are here.
  void show(std::int64_t step, const exec::TensorBlock& parameters, const exec::TensorBlock& gradients,
            exec::WorkerPool& pool, bool divided);

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
