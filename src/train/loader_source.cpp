#include "train/loader_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::train {

LoaderSource::LoaderSource(data::Loader& loader, const Graph& graph, std::shared_ptr<FlightRecorder> recorder)
    : loader_(loader), recorder_(std::move(recorder)) {
  const auto& features = loader.features();
  for (const ValueId id : graph.inputs) {
    const std::string& name = graph.at(id).name;
    const auto found = std::find_if(features.begin(), features.end(), [&](const auto& f) { return f.name == name; });
    if (found == features.end()) {
      throw Error(ExitCode::configuration, fmt::format("job.data: nothing feeds the model's input '{}'", name));
    }
    feature_of_.push_back(static_cast<std::size_t>(found - features.begin()));
  }
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

}  // namespace lockstep::train
