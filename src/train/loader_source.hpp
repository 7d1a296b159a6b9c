// Binds a data loader to the executor: features to graph inputs, by name.
#pragma once

#include <vector>

#include "data/loader.hpp"
#include "exec/input_source.hpp"
#include "lockstep/graph.hpp"

namespace lockstep::train {

class LoaderSource final : public exec::InputSource {
 public:
  /// Throws Error(configuration) for a graph input that no feature feeds.
  LoaderSource(data::Loader& loader, const Graph& graph);
  void get(std::uint64_t step, int shard, exec::ShardInputs& inputs) override;
  void release(std::uint64_t step, int shard) override { loader_.release(step, shard); }

 private:
  data::Loader& loader_;
  std::vector<std::size_t> feature_of_;  // by graph input
};

}  // namespace lockstep::train
