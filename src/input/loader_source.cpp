#include "input/loader_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::input {

std::vector<std::size_t> features_of_inputs(const Graph& graph, const std::vector<Feature>& features) {
  std::vector<std::size_t> found;
  for (const ValueId id : graph.inputs) {
    const std::string& name = graph.at(id).name;
    const auto feature = std::find_if(features.begin(), features.end(), [&](const auto& f) { return f.name == name; });
    if (feature == features.end()) {
      throw Error(ExitCode::configuration, fmt::format("job.data: nothing feeds the model's input '{}'", name));
    }
    found.push_back(static_cast<std::size_t>(feature - features.begin()));
  }
  return found;
}

LoaderSource::LoaderSource(data::Loader& loader, const Graph& graph, std::shared_ptr<FlightRecorder> recorder)
    : loader_(loader), recorder_(std::move(recorder)) {
  if (!loader.drawn()) {
    feature_of_ = features_of_inputs(graph, loader.features());
    return;
  }
  feature_of_.resize(loader.features().size());
  std::iota(feature_of_.begin(), feature_of_.end(), std::size_t{0});
}

void LoaderSource::get(std::uint64_t step, int shard, exec::ShardInputs& inputs) {
  const data::Batch& batch = loader_.get(step, shard);
  inputs.tensors.clear();
  for (const auto feature : feature_of_) inputs.tensors.push_back(batch.tensors[feature].tensor.bytes());
  inputs.valid = batch.valid;
}

void LoaderSource::release(std::uint64_t step, int shard) {
  loader_.release(step, shard);
  if (recorder_) recorder_->tick();
}

}  // namespace lockstep::input
