// Binds a data loader to the executor: features to graph inputs, by name.
#pragma once

#include <memory>
#include <vector>

#include "core/flight_recorder.hpp"
#include "data/loader.hpp"
#include "exec/input_source.hpp"
#include "lockstep/graph.hpp"

namespace lockstep::input {

/// For each input of the graph the feature of its name. Throws Error(configuration) for an input that none feeds.
[[nodiscard]] std::vector<std::size_t> features_of_inputs(const Graph& graph, const std::vector<Feature>& features);

class LoaderSource final : public exec::InputSource {
 public:
  /// Gives the inputs of the graph, by name; or, where the loader's batches are drawn, all that an InputFiller needs.
  /// Throws Error(configuration) for a graph input that no feature feeds.
  /// Each shard that is done counts as work in `recorder`, which may be null.
  LoaderSource(data::Loader& loader, const Graph& graph, std::shared_ptr<FlightRecorder> recorder = {});
  void get(std::uint64_t step, int shard, exec::ShardInputs& inputs) override;
  void release(std::uint64_t step, int shard) override;

 private:
  data::Loader& loader_;
  std::shared_ptr<FlightRecorder> recorder_;
  std::vector<std::size_t> feature_of_;  // by tensor that is given
};

}  // namespace lockstep::input
