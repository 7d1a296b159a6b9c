// The adapters of a run with LoRA as Hugging Face's PEFT has them, for the model that they were trained for.
#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <nlohmann/json.hpp>
#include <set>

#include "graph/lora.hpp"
#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "run/checkpoint/safetensors.hpp"
#include "tools/formats/torch_weights.hpp"

namespace lockstep::formats {

namespace {

using Json = nlohmann::ordered_json;

/// "transformer.h.0.attn.c_attn" of its weight or bias; of a tensor that is no module's, the tensor itself.
std::string module_of(const std::string& tensor) {
  for (const std::string_view kind : {".weight", ".bias"}) {
    if (tensor.ends_with(kind)) return tensor.substr(0, tensor.size() - kind.size());
  }
  return tensor;
}

bool is_shared(const Graph& graph, const std::string& parameter) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return node.attributes.has("tied") && node.attributes.text("tied") == module_of(parameter);
  });
}

[[noreturn]] void refuse(const std::string& parameter, const std::string& why) {
  throw Error(ExitCode::usage,
              fmt::format("--to peft: expected adapters and whole layers beside them (modules_to_save), "
                          "found that {} was trained, {}; take --to huggingface, which has all weights",
                          parameter, why));
}

/// The tensors, and what they belong to.
class PeftAdapter {
 public:
  PeftAdapter(const ExportedModel& model, const ForeignModel& foreign) : model_(model), foreign_(foreign) {
    const Graph& graph = *model.graph;
    for (const ValueId id : graph.parameters) {
      const Value& value = graph.at(id);
      if (!value.frozen && !is_adapter(value.name)) add_trained(value.name);
    }
    for (const ValueId id : graph.parameters) add(id);
  }

  std::vector<checkpoint::NamedSpan> tensors;
  std::set<std::string> adapted, saved;  ///< modules, by their full names

 private:
  /// A parameter beside the adapters: its module is saved, which must have been trained as a whole.
  void add_trained(const std::string& name) {
    if (is_shared(*model_.graph, name)) refuse(name, "which another layer shares");
    for (const Adapter& adapter : adapters_of(*model_.graph)) {
      if (adapter.layer == module_of(name)) refuse(name, "whose layer has an adapter");
    }
    const ForeignTensor found = *foreign_.find(name);
    for (const std::string& theirs : found.names) {
      const std::string module = module_of(theirs);
      if (module == theirs) refuse(name, "which is no layer's in transformers");
      saved.insert(module);
      for (const ValueId id : model_.graph->parameters) {
        const Value& other = model_.graph->at(id);
        if (!other.frozen || is_adapter(other.name)) continue;
        const std::vector<std::string> names = foreign_.find(other.name)->names;
        const bool inside = std::any_of(names.begin(), names.end(),
                                        [&](const std::string& part) { return part.starts_with(module + "."); });
        if (inside) refuse(name, fmt::format("but {} was not", other.name));
      }
    }
  }

  void add(ValueId id) {
    const Value& value = model_.graph->at(id);
    const bool adapter = is_adapter(value.name);
    if (!adapter && value.frozen) return;
    const ForeignTensor theirs = *foreign_.find(value.name);
    const std::span<const float> values = model_.values(id);
    const std::size_t part = theirs.alike ? 0 : values.size() / theirs.names.size();
    for (std::size_t i = 0; i < theirs.names.size(); ++i) {
      const std::string& name = theirs.names[i];
      const std::span<const float> of_part = theirs.alike ? values : values.subspan(i * part, part);
      if (adapter) {
        const std::size_t module = kPeftPrefix.size();
        adapted.insert(name.substr(module, name.find(".lora_") - module));
      }
      tensors.push_back({adapter ? name : std::string(kPeftPrefix) + name, theirs.shape_there(value.spec.shape),
                         theirs.transposed ? transposed(of_part, value.spec.shape) : of_part});
    }
  }

  std::span<const float> transposed(std::span<const float> values, const Shape& shape) {
    std::vector<float>& turned = turned_.emplace_back(values.size());
    const std::size_t rows = shape[0], columns = shape[1];
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column)
        turned[column * rows + row] = values[row * columns + column];
    }
    return turned;
  }

  const ExportedModel& model_;
  const ForeignModel& foreign_;
  std::list<std::vector<float>> turned_;
};

Json task_of(const ExportedModel& model, const ForeignModel& foreign) {
  if (foreign.name() == "gpt2" || foreign.name() == "llama") return "CAUSAL_LM";
  const bool classes = model.graph->at(model.graph->output).spec.shape.size() == 2;
  return foreign.name() == "bert" && classes ? Json("SEQ_CLS") : Json();
}

}  // namespace

std::vector<ExportedFile> peft_files(const ExportedModel& model, const PeftSettings& settings) {
  const ForeignModel* const foreign = foreign_model(WeightNames::huggingface, *model.graph);
  if (foreign == nullptr) {
    throw Error(
        ExitCode::usage,
        "--to peft: expected a model that transformers has, gpt, llama, bert with types or vit with pool: token, "
        "found another one; take --to torch or --to onnx, which merge adapters into the weights");
  }
  const PeftAdapter adapter(model, *foreign);
  const Json config = {{"peft_type", "LORA"},
                       {"task_type", task_of(model, *foreign)},
                       {"base_model_name_or_path", settings.base},
                       {"r", settings.rank},
                       {"lora_alpha", settings.alpha},
                       {"lora_dropout", settings.dropout},
                       {"target_modules", adapter.adapted},
                       {"modules_to_save", adapter.saved.empty() ? Json() : Json(adapter.saved)},
                       {"fan_in_fan_out", foreign->name() == "gpt2"},
                       {"bias", "none"},
                       {"inference_mode", true}};
  return {{"adapter_model.safetensors", checkpoint::to_safetensors(adapter.tensors, weights_metadata(model, "pt"))},
          {"adapter_config.json", config.dump(2) + "\n"}};
}

}  // namespace lockstep::formats
