#include "tools/formats/torch_module.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "graph/flattened.hpp"
#include "graph/foreign_names.hpp"
#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "tools/formats/torch_calls.hpp"

namespace lockstep::formats {

namespace {

constexpr const char* kHead = R"(import pathlib

from safetensors.torch import load_file
import torch
from torch.nn import functional as F
)";

constexpr const char* kRope = R"(

def rope(x, heads, base):
    """Turns the halves of each head by the position."""
    x = x.unflatten(-1, (heads, 2, -1))
    pairs = x.shape[-1]
    angles = base ** (-torch.arange(pairs, dtype=torch.float64, device=x.device) / pairs)
    angles = torch.arange(x.shape[1], device=x.device)[:, None, None] * angles
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.unbind(-2)
    return torch.stack((a * cosine - b * sine, b * cosine + a * sine), -2).flatten(2)
)";

// torch.nn.Module refuses to set its own attribute, such as `training`, where a layer is called so.
constexpr const char* kInit = R"(

class Layer(torch.nn.Module):
    """Has layers of any name, also of those that torch.nn.Module keeps for itself: "type", "forward", "training"."""

    def __setattr__(self, name, value):
        is_kept = name in self.__dict__ or hasattr(torch.nn.Module, name)
        if is_kept and not isinstance(value, torch.nn.Module):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def at(self, name):
        """The layer that has a tensor, made where it is missing, and the tensor's name in it."""
        *path, last = name.split(".")
        layer = self
        for part in path:
            layer = layer._modules.setdefault(part, Layer())
        return layer, last


class Model(Layer):
    def __init__(self):
        super().__init__()
        for name, shape in PARAMETERS.items():
            layer, last = self.at(name)
            layer._parameters[last] = torch.nn.Parameter(torch.empty(shape))
        for name, shape in BUFFERS.items():
            layer, last = self.at(name)
            layer._buffers[last] = torch.empty(shape)
)";

/// As Python writes text, and JSON.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

void require_calls(const Graph& graph) {
  std::set<std::string> unknown;
  for (const Node& node : graph.nodes) {
    if (!torch_functions().contains(node.op->name)) unknown.insert(node.op->name);
  }
  if (unknown.empty()) return;
  throw Error(ExitCode::usage, fmt::format("--to torch: expected ops that PyTorch has, found {}; export without --to",
                                           fmt::join(unknown, ", ")));
}

std::string shapes(const std::string& name, const Graph& graph, const std::vector<ValueId>& ids) {
  if (ids.empty()) return fmt::format("{} = {{}}\n", name);
  std::string text = fmt::format("{} = {{\n", name);
  for (const ValueId id : ids) {
    text += fmt::format("    {}: {},\n", quoted(torch_name(graph.at(id).name)), to_string(graph.at(id).spec.shape));
  }
  return text + "}\n";
}

/// forward(), a line a node.
class Forward {
 public:
  explicit Forward(const Graph& graph) : graph_(graph), flat_images_(flattened_tensors(graph).values) {}

  std::string text() {
    std::vector<std::string> inputs;
    for (const ValueId id : graph_.inputs) inputs.push_back(variables_[id] = variable(graph_.at(id).name));
    std::string text = fmt::format(
        "\n    def forward(self, {}):\n        t = dict(self.named_parameters()) | dict(self.named_buffers())\n",
        fmt::join(inputs, ", "));
    for (const Node& node : graph_.nodes) text += line(node);
    return text + fmt::format("        return {}\n", variables_.at(graph_.output));
  }

 private:
  /// A name of Python's that nothing else has.
  std::string variable(std::string name) {
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) name = "_" + name;
    while (!taken_.insert(name).second) name += "_";
    return name;
  }

  std::string line(const Node& node) {
    TorchCall call{graph_, node, {}, {}, flat_images_.contains(node.inputs.front())};
    for (const ValueId id : node.inputs) call.inputs.push_back(variables_.at(id));
    for (const auto* list : {&node.parameters, &node.states}) {
      for (const ValueId id : *list)
        call.tensors.push_back(fmt::format("t[{}]", quoted(torch_name(graph_.at(id).name))));
    }
    const std::string expression = torch_functions().at(node.op->name)(call);
    const std::string name = variables_[node.outputs.front()] = variable(node.name);
    return fmt::format("        {} = {}\n", name, expression);
  }

  const Graph& graph_;
  std::map<ValueId, std::string> variables_;
  std::set<ValueId> flat_images_;
  // Python's words, and what the file itself uses.
  std::set<std::string> taken_{"self",  "t",        "torch", "F",      "rope", "and",   "as",     "assert",   "break",
                               "class", "continue", "def",   "del",    "elif", "else",  "except", "finally",  "for",
                               "from",  "global",   "if",    "import", "in",   "is",    "lambda", "nonlocal", "not",
                               "or",    "pass",     "raise", "return", "try",  "while", "with",   "yield",    "None",
                               "True",  "False",    "async", "await",  "dict", "len"};
};

}  // namespace

std::string torch_module(const ExportedModel& model, const std::string& file) {
  const Graph& graph = *model.graph;
  require_calls(graph);
  const bool turns =
      std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) { return node.op->name == "rope"; });
  std::string text =
      quoted(fmt::format("{} in PyTorch, as lockstep exported it from {}.", model.job, model.source)) + "\n" + kHead;
  text += "\n" + shapes("PARAMETERS", graph, graph.parameters) + shapes("BUFFERS", graph, graph.states);
  if (turns) text += kRope;
  text += kInit + Forward(graph).text();
  return text + fmt::format(
                    "\n\ndef load(path=pathlib.Path(__file__).with_name({})):\n    model = Model()\n"
                    "    model.load_state_dict(load_file(path))\n    return model.eval()\n",
                    quoted(file));
}

}  // namespace lockstep::formats
