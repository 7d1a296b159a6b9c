// lstm: a language model of LSTM layers: an embedding, layers of as many units as its width, and a head. Dropout acts
// where nothing is carried from step to step: behind the embedding and behind each layer. Each sample begins with a
// state of 0. Sources: Zaremba, Sutskever and Vinyals, "Recurrent neural network regularization", 2014; `tied`: Press
// and Wolf, "Using the output embedding to improve language models", EACL 2017.
#include <fmt/format.h>

#include "graph/zoo.hpp"

namespace lockstep::models {

namespace {

struct LstmSize {
  std::int64_t layers, width;
};

LstmSize lstm_size(const Attributes& attributes) {
  const std::string& name = attributes.text("size");
  LstmSize size{1, 128};  // "tiny": a character model for a CPU
  if (name == "small") size = {2, 200};
  if (name == "medium") size = {2, 650};
  if (name == "large") size = {2, 1500};
  if (attributes.has("layers")) size.layers = attributes.integer("layers");
  if (attributes.has("width")) size.width = attributes.integer("width");
  return size;
}

ValueId build_lstm(GraphBuilder& b, const Attributes& attributes, const ModelContext& context) {
  const std::int64_t vocabulary = vocabulary_of(attributes, context, "lstm");
  const LstmSize size = lstm_size(attributes);
  const double dropout = attributes.number("dropout");
  const auto drop = [&](ValueId x, const std::string& name) {
    return dropout > 0 ? b.apply("dropout", {x}, Attributes({{"rate", dropout}}), name + ".dropout") : x;
  };
  ValueId x = b.apply("embedding", {only_input(context, "lstm")},
                      Attributes({{"vocabulary", vocabulary}, {"width", size.width}}), "tokens");
  x = drop(x, "embedding");
  for (std::int64_t i = 1; i <= size.layers; ++i) {
    const std::string name = fmt::format("lstm{}", i);
    b.begin_block(name);
    x = drop(b.apply("lstm", {x}, Attributes({{"features", size.width}}), name), name);
    b.begin_block("");
  }
  Attributes head({{"features", vocabulary}, {"bias", true}});
  if (attributes.has("tied") && attributes.boolean("tied")) head.set("tied", std::string("tokens"));
  return b.apply("linear", {x}, head, "head");
}

}  // namespace

ModelDef make_lstm() {
  return {
      .name = "lstm",
      .doc = "LSTM language model.",
      .attributes = {{.name = "size",
                      .kind = AttributeKind::text,
                      .doc = "layers, width: tiny 1, 128; small 2, 200; medium 2, 650; large 2, 1500",
                      .default_value = Attribute(std::string("tiny")),
                      .choices = {"tiny", "small", "medium", "large"}},
                     optional_size("layers", "LSTM layers; default: by size"),
                     optional_size("width", "units of each layer and of the embedding; default: by size"),
                     {.name = "dropout",
                      .kind = AttributeKind::number,
                      .doc =
                          "dropout rate after the embedding and each layer; the paper: 0.5 for medium, 0.65 for large",
                      .default_value = Attribute(0.0),
                      .minimum = 0,
                      .maximum = 0.999},
                     {.name = "tied",
                      .kind = AttributeKind::boolean,
                      .doc = "the head shares the embedding's weight",
                      .optional = true},
                     optional_size("vocabulary", "distinct tokens; default: the data set's")},
      .shorthand = "size",
      .build = build_lstm};
}

}  // namespace lockstep::models
