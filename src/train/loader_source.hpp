// Binds a data loader to the executor: features to graph inputs, by name.
#pragma once

#include <memory>
#include <vector>

#include "core/flight_recorder.hpp"
#include "data/loader.hpp"
#include "exec/input_source.hpp"
#include "lockstep/graph.hpp"

namespace lockstep::train {

class LoaderSource final : public exec::InputSource {
 public:
  /// Throws Error(configuration) for a graph input that no feature feeds.
  /// Each shard that is done counts as work in `recorder`, which may be null.
  LoaderSource(data::Loader& loader, const Graph& graph, std::shared_ptr<FlightRecorder> recorder = {});
  void get(std::uint64_t step, int shard, exec::ShardInputs& inputs) override;
  void release(std::uint64_t step, int shard) override;

 private:
  data::Loader& loader_;
  std::shared_ptr<FlightRecorder> recorder_;
  std::vector<std::size_t> feature_of_;  // by graph input
};

}  // namespace lockstep::train
