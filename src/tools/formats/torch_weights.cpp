#include "tools/formats/torch_weights.hpp"

#include <fmt/format.h>

#include <map>

#include "graph/flattened.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/safetensors.hpp"

namespace lockstep::formats {

namespace {

/// [out, in] to [in, out].
std::vector<float> transposed(std::span<const float> values, std::int64_t rows, std::int64_t columns) {
  std::vector<float> out(values.size());
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    out[i % columns * rows + i / columns] = values[i];
  }
  return out;
}

/// What follows an image, in PyTorch's order.
std::vector<float> channels_first(std::span<const float> values, const FlattenedTensor& tensor, std::int64_t columns) {
  std::vector<float> out(values.size());
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    out[tensor.place_in_torch(i, columns)] = values[i];
  }
  return out;
}

/// `names`: of tensors, by what they are called there.
void take_name(std::map<std::string, std::string>& names, const std::string& theirs, const std::string& ours) {
  const auto [place, is_new] = names.try_emplace(theirs, ours);
  if (is_new) return;
  throw Error(ExitCode::usage,
              fmt::format("--to torch: expected tensors with names of their own, found {} and {}, which are both {} in "
                          "PyTorch; export without --to, and rename one of them yourself",
                          place->second, ours, theirs));
}

}  // namespace

std::map<std::string, std::string> weights_metadata(const ExportedModel& model, const std::string& format) {
  std::map<std::string, std::string> metadata = {{"format", format}};
  if (!model.data.empty()) metadata["data"] = exported_facts(model);
  return metadata;
}

std::string lockstep_weights(const ExportedModel& model) {
  std::vector<checkpoint::NamedSpan> tensors;
  for (const auto* list : {&model.graph->parameters, &model.graph->states}) {
    for (const ValueId id : *list) {
      tensors.push_back({model.graph->at(id).name, model.graph->at(id).spec.shape, model.values(id)});
    }
  }
  return checkpoint::to_safetensors(tensors, weights_metadata(model, "lockstep"));
}

std::string torch_weights(const ExportedModel& model, const ForeignModel* foreign) {
  const FlattenedTensors flattened = flattened_tensors(*model.graph);
  if (!flattened.unclear.empty()) {
    throw Error(
        ExitCode::usage,
        fmt::format("--to torch: PyTorch flattens images in the order channel, height, width, lockstep in height, "
                    "width, channel, and {} mixes such an image with something else; export without --to, and "
                    "put the columns of the linear layers behind it in PyTorch's order yourself",
                    flattened.unclear));
  }
  std::vector<std::vector<float>> made;  // what is not in memory as it is written
  made.reserve(model.graph->parameters.size() + model.graph->states.size());
  std::vector<checkpoint::NamedSpan> tensors;
  std::map<std::string, std::string> names;
  for (const auto* list : {&model.graph->parameters, &model.graph->states}) {
    for (const ValueId id : *list) {
      const Value& value = model.graph->at(id);
      const auto theirs =
          foreign == nullptr ? ForeignTensor{{torch_name(value.name)}} : foreign->find(value.name).value();
      std::span<const float> values = model.values(id);
      if (const auto found = flattened.by_name.find(value.name); found != flattened.by_name.end()) {
        values = made.emplace_back(channels_first(values, found->second, value.spec.shape.back()));
      } else if (theirs.transposed) {
        values = made.emplace_back(transposed(values, value.spec.shape.at(0), value.spec.shape.at(1)));
      }
      const Shape there = theirs.shape_there(value.spec.shape);
      const std::size_t part = values.size() / theirs.names.size();
      for (std::size_t i = 0; i < theirs.names.size(); ++i) {
        take_name(names, theirs.names[i], value.name);
        tensors.push_back({theirs.names[i], there, values.subspan(i * part, part)});
      }
    }
  }
  return checkpoint::to_safetensors(tensors, weights_metadata(model, "pt"));
}

}  // namespace lockstep::formats
