// Weights for PyTorch with a Python file beside them.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/op.hpp"
#include "tools/formats/torch_module.hpp"
#include "tools/formats/torch_weights.hpp"

namespace lockstep::formats {

namespace {

std::int64_t convolutions(const Graph& graph) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return n.op->name == "conv"; });
}

/// The function of torchvision.models that makes the model; empty: none does.
std::string torchvision_function(const Graph& graph, const ForeignModel& foreign) {
  const Value& stem = graph.at(graph.parameters.front());
  const bool on_large_images = stem.spec.shape[2] == 7;
  if (foreign.name() == "resnet" && on_large_images) {
    const std::int64_t count = convolutions(graph);
    return count == 20 ? "resnet18" : count == 36 ? "resnet34" : count == 53 ? "resnet50" : "";
  }
  const auto stride = graph.nodes.front().attributes.integers("stride");
  return foreign.name() == "mobilenet" && stride.front() == 2 ? "mobilenet_v2" : "";
}

std::string python_of_torchvision(const ExportedModel& model, const std::string& function, const std::string& file) {
  const Graph& graph = *model.graph;
  const std::int64_t channels = graph.at(graph.inputs.front()).spec.shape.back();
  const Shape& stem = graph.at(graph.parameters.front()).spec.shape;
  const bool mobile = function == "mobilenet_v2";
  std::string settings = fmt::format("num_classes={}", graph.at(graph.output).spec.shape.back());
  if (mobile) settings += fmt::format(", width_mult={}", static_cast<double>(stem[0]) / 32);
  const auto quoted = [](const std::string& of) {
    return nlohmann::json(of).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  };
  std::string text = quoted(fmt::format("{} in PyTorch, as lockstep exported it from {}.", function, model.source));
  text += "\nimport pathlib\n\nfrom safetensors.torch import load_file\nimport torchvision\n";
  if (channels != 3) text += "import torch\n";
  text +=
      fmt::format("\n\ndef load(path=pathlib.Path(__file__).with_name({})):\n    model = torchvision.models.{}({})\n",
                  quoted(file), function, settings);
  if (channels != 3) {
    text += fmt::format("    model.{} = torch.nn.Conv2d({}, {}, {}, 2, {}, bias=False)\n",
                        mobile ? "features[0][0]" : "conv1", channels, stem[0], stem[2], stem[2] / 2);
  }
  return text + "    model.load_state_dict(load_file(path))\n    return model.eval()\n";
}

}  // namespace

std::vector<ExportedFile> torch_files(const ExportedModel& model, const std::string& file) {
  const ForeignModel* foreign = foreign_model(WeightNames::torchvision, *model.graph);
  const std::string function = foreign == nullptr ? "" : torchvision_function(*model.graph, *foreign);
  if (function.empty()) foreign = nullptr;
  const std::string python = std::filesystem::path(file).stem().string() + ".py";
  return {{file, torch_weights(model, foreign)},
          {python, foreign == nullptr ? torch_module(model, file) : python_of_torchvision(model, function, file)}};
}

}  // namespace lockstep::formats
