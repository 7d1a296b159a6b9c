// Board: what a run shows in TensorBoard, on rank 0: its events, and periodically its model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/input/prepared_data.hpp"
#include "data/picture.hpp"
#include "lockstep/graph.hpp"
#include "observe/rank_context.hpp"
#include "observe/telemetry/tensorboard.hpp"
#include "step/exec/parameters.hpp"
#include "step/exec/worker_pool.hpp"

namespace lockstep::observe {

/// "block1.conv" -> "block1/conv": TensorBoard groups names at slashes.
[[nodiscard]] std::string path_name(std::string name);

/// Inputs, parameters and states are nodes too, as in TensorBoard's graphs.
[[nodiscard]] std::vector<telemetry::BoardNode> board_nodes(const Graph& graph);

/// One cell per filter, in colour if the filter reads three channels, else its first channel; 0 is mid-grey, and the
/// layer's largest weight black or white. Nothing if the graph has no convolution.
[[nodiscard]] std::optional<data::Picture> first_filters(const Graph& graph, const exec::TensorBlock& parameters);

class Board final : public events::Sink {
 public:
  /// The arguments must outlive the board.
  Board(const RankContext& run, const input::PreparedData& data, const Graph& graph)
      : run_(run), data_(data), graph_(graph) {}

  /// Call before the first step: creates the file and writes what does not change, unless an earlier start has: the
  /// job, the graph, hyper-parameters and a sheet of inputs. `steps`: done so far; `steps_per_epoch` converts the job's
  /// spans to steps. Throws Error(cannot_create).
  void start(std::int64_t steps, std::int64_t steps_per_epoch);
  void event(const events::Event& event) override;

  /// Whether to show the model at this step: as the job says, but the longer the run is, the less often. show() must
  /// follow then.
  bool shows(std::int64_t step) const;
  /// Writes histograms of weights and gradients, and the first filters. `divided`: this rank has only its own
  /// parameters.
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
