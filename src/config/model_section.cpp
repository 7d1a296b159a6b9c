// model: a zoo model with its parameters, or `layers:`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "config/attribute_rules.hpp"
#include "config/list_rules.hpp"
#include "config/scalar_rules.hpp"
#include "config/sections.hpp"
#include "core/nearest.hpp"

namespace lockstep::config {
namespace {

Is<std::vector<std::string>> names() {
  return list_of<std::string>(text(), {.single = true});
}

/// Inputs are given once, beside the op or inside it, and only one unless the op joins several.
void check_inputs(const LayerOptions& layer, const Scope& scope, bool takes_several) {
  const Entry* op = scope.cursor().node().find(layer.op);
  if (scope.written("inputs") && op != nullptr && op->value.find("inputs") != nullptr) {
    scope.problem("inputs", fmt::format("expected inputs once, found them beside and inside '{}'", layer.op));
  } else if (!takes_several && layer.inputs.size() > 1) {
    scope.problem("inputs", fmt::format("expected one input, since '{}' takes one, found {}; join them first with a "
                                        "layer such as add or concat",
                                        layer.op, layer.inputs.size()));
  }
}

Is<LayerOptions> layer_section(const Catalogue& catalogue) {
  constexpr const char* kInputsDoc = "earlier layers or features of a sample; 'previous' is the layer above";
  Section<LayerOptions> section;
  std::set<std::string> joins;
  for (const auto& op : catalogue.layers) {
    if (op.takes_inputs) joins.insert(op.name);
    auto settings = attributes_section(op, &LayerOptions::attributes);
    // `{add: {inputs: [...]}}` reads better than `inputs` beside the op if the op has no other settings.
    const auto is_inputs = [](const AttributeSpec& spec) { return spec.name == "inputs"; };
    if (std::none_of(op.attributes.begin(), op.attributes.end(), is_inputs)) {
      settings.field("inputs", &LayerOptions::inputs, names(), kInputsDoc).written_if([](const auto&) {
        return false;
      });
    }
    section.option(op.name, &LayerOptions::op, settings, op.doc);
  }
  return section.field("name", &LayerOptions::name, text(), "for `inputs` and the names of parameters")
      .field("inputs", &LayerOptions::inputs, names(), kInputsDoc)
      .field("block", &LayerOptions::block, text(),
             "neighbours with one name are one piece of the model, recomputed as a whole by `recompute: blocks`")
      .field("part", &LayerOptions::part, text(),
             "the layer's `parallel.parts`, with its own ranks; default: that of the layer above")
      .placed(&LayerOptions::place)
      .called("a layer such as relu or {linear: {features: 10}}")
      .check({}, [joins](const LayerOptions& layer, const Scope& scope) {
        check_inputs(layer, scope, joins.contains(layer.op));
      });
}

/// The names of the layers: the given one or "<op><n>", as the graph names them.
std::vector<std::string> layer_names(const std::vector<LayerOptions>& layers) {
  std::map<std::string, int> counts;
  std::vector<std::string> all;
  for (const auto& layer : layers) {
    const int count = ++counts[layer.op];
    all.push_back(layer.name.empty() ? fmt::format("{}{}", layer.op, count) : layer.name);
  }
  return all;
}

void check_names(const ModelOptions& model, const Scope& scope) {
  const auto all = layer_names(model.layers);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string key = fmt::format("layers[{}]", i);
    const auto say = [&](const std::string& message) {
      const YamlNode& layer = scope.cursor().node().find("layers")->value.items.at(i);
      scope.cursor().session().problem(layer.mark, scope.cursor().path() + "." + key, message);
    };
    if (all[i] == "previous") say("expected a name other than 'previous', which stands for the layer above");
    if (!seen.insert(all[i]).second) say(fmt::format("expected a name of its own, found '{}' a second time", all[i]));
    for (const auto& input : model.layers[i].inputs) {
      if (input == "previous" || std::find(all.begin(), all.begin() + i, input) != all.begin() + i) {
        continue;
      }
      if (std::find(all.begin(), all.end(), input) != all.end()) {
        say(fmt::format("expected earlier layers as inputs, found '{}', which is not above this one", input));
      } else if (!model.inputs.empty() &&
                 std::find(model.inputs.begin(), model.inputs.end(), input) == model.inputs.end()) {
        std::vector<std::string> known(all.begin(), all.begin() + i);
        known.insert(known.end(), model.inputs.begin(), model.inputs.end());
        say(fmt::format("expected earlier layers or inputs of the model as inputs, found '{}'{}", input,
                        did_you_mean(input, known)));
      }
    }
  }
}

Is<LoraOptions> lora_section() {
  using Options = LoraOptions;
  return Section<Options>()
      .field("rank", &Options::rank, number().at_least(1), "rank of the product added to a weight")
      .field("alpha", &Options::alpha, number().above(0), "the product is multiplied by alpha / rank")
      .field("dropout", &Options::dropout, number().at_least(0).below(1), "dropout rate of the adapter's input")
      .field("layers", &Options::layers, list_of<std::string>(text(), {.single = true}),
             "glob patterns of linear layers")
      .required()
      .field("train", &Options::train, list_of<std::string>(text(), {.least = 0, .single = true}),
             "glob patterns of parameters trained too; all others are frozen")
      .placed(&Options::place);
}

}  // namespace

Is<ModelOptions> model_section(const Catalogue& catalogue) {
  Section<ModelOptions> section;
  for (const auto& model : catalogue.models) {
    section.option(model.name, &ModelOptions::zoo, attributes_section(model, &ModelOptions::parameters), model.doc);
  }
  return section
      .field("layers", &ModelOptions::layers, list_of(layer_section(catalogue)), "the network, layer by layer")
      .alternative([](ModelOptions& model) { model.zoo.clear(); },
                   [](const ModelOptions& model) { return model.zoo.empty(); })
      .field("inputs", &ModelOptions::inputs, names(), "features that feed the model; default: all but the target")
      .field("freeze", &ModelOptions::freeze, list_of<std::string>(text(), {.least = 0, .single = true}),
             "glob patterns of parameters that are not trained")
      .field("lora", &ModelOptions::lora, optional_of(lora_section()),
             "low-rank adapters, trained instead of linear layers' weights (LoRA)")
      .written_if([](const ModelOptions& model) { return model.lora.has_value(); })
      .placed(&ModelOptions::place)
      .check({"layers", "inputs"}, check_names);
}

}  // namespace lockstep::config
