// gpt: the decoder-only transformer of GPT-2, with pre-norm blocks, learned positions and a tied head. Weights are
// initialised with a standard deviation of 0.02, and 0.02 / sqrt(2 * layers) for the projections into the residual
// stream.
// Source: Radford et al., "Language models are unsupervised multitask learners", 2019.
#include <fmt/format.h>

#include <cmath>

#include "graph/models/zoo.hpp"
#include "lockstep/error.hpp"

namespace lockstep::models {

namespace {

struct Size {
  std::int64_t layers, heads, width;
};

Size size_of(const Attributes& attributes) {
  const std::string& name = attributes.text("size");
  Size size{4, 4, 128};  // "tiny": a character model for a CPU
  if (name == "gpt2") size = {12, 12, 768};
  if (name == "gpt2-medium") size = {24, 16, 1024};
  if (name == "gpt2-large") size = {36, 20, 1280};
  if (name == "gpt2-xl") size = {48, 25, 1600};
  if (name == "small") size = {6, 6, 384};
  if (attributes.has("layers")) size.layers = attributes.integer("layers");
  if (attributes.has("heads")) size.heads = attributes.integer("heads");
  if (attributes.has("width")) size.width = attributes.integer("width");
  return size;
}

class Gpt {
 public:
  Gpt(GraphBuilder& builder, const Attributes& attributes)
      : b_(builder),
        size_(size_of(attributes)),
        dropout_(attributes.number("dropout")),
        bias_(attributes.boolean("bias")),
        residual_stddev_(0.02 / std::sqrt(2.0 * static_cast<double>(size_.layers))) {}

  ValueId build(ValueId tokens, std::int64_t vocabulary) {
    ValueId x = b_.apply("embedding", {tokens},
                         Attributes({{"vocabulary", vocabulary}, {"width", size_.width}, {"std", 0.02}}), "tokens");
    x = drop(b_.apply("position_embedding", {x}, Attributes({{"std", 0.02}}), "positions"), "embedding");
    for (std::int64_t i = 1; i <= size_.layers; ++i) x = block(x, fmt::format("block{}", i));
    x = norm(x, "norm");
    return b_.apply("linear", {x},
                    Attributes({{"features", vocabulary}, {"bias", false}, {"tied", std::string("tokens")}}), "head");
  }

 private:
  ValueId block(ValueId x, const std::string& name) {
    b_.begin_block(name);
    ValueId y = linear(norm(x, name + ".norm1"), 3 * size_.width, 0.02, name + ".qkv");
    y = b_.apply("attention", {y}, Attributes({{"heads", size_.heads}, {"causal", true}}), name + ".attention");
    y = drop(linear(y, size_.width, residual_stddev_, name + ".projection"), name + ".projection");
    x = b_.apply("add", {x, y}, {}, name + ".add1");
    y = linear(norm(x, name + ".norm2"), 4 * size_.width, 0.02, name + ".expand");
    y = b_.apply("gelu", {y}, {}, name + ".gelu");
    y = drop(linear(y, size_.width, residual_stddev_, name + ".contract"), name + ".contract");
    x = b_.apply("add", {x, y}, {}, name + ".add2");
    b_.begin_block("");
    return x;
  }
  ValueId linear(ValueId x, std::int64_t features, double stddev, const std::string& name) {
    return b_.apply("linear", {x}, Attributes({{"features", features}, {"bias", bias_}, {"std", stddev}}), name);
  }
  ValueId norm(ValueId x, const std::string& name) {
    return b_.apply("layer_norm", {x}, Attributes({{"bias", bias_}}), name);
  }
  ValueId drop(ValueId x, const std::string& name) {
    if (dropout_ <= 0) return x;
    return b_.apply("dropout", {x}, Attributes({{"rate", dropout_}}), name + ".dropout");
  }

  GraphBuilder& b_;
  Size size_;
  double dropout_;
  bool bias_;
  double residual_stddev_;
};

ValueId build_gpt(GraphBuilder& b, const Attributes& attributes, const ModelContext& context) {
  const std::int64_t vocabulary = attributes.has("vocabulary") ? attributes.integer("vocabulary") : context.vocabulary;
  if (vocabulary <= 0) {
    throw Error(ExitCode::configuration, "gpt: vocabulary: the data set has none; train on text or tokens, or give it");
  }
  return Gpt(b, attributes).build(only_input(context, "gpt"), vocabulary);
}

AttributeSpec optional_size(const std::string& name, const std::string& doc) {
  return {.name = name, .doc = doc, .optional = true, .minimum = 1};
}

}  // namespace

ModelDef gpt() {
  return {
      .name = "gpt",
      .doc = "GPT-2's decoder-only transformer.",
      .attributes = {{.name = "size",
                      .kind = AttributeKind::text,
                      .doc =
                          "tiny 4 layers, 4 heads, width 128; small 6, 6, 384; gpt2 12, 12, 768; gpt2-medium 24, 16, "
                          "1024; gpt2-large 36, 20, 1280; gpt2-xl 48, 25, 1600",
                      .default_value = Attribute(std::string("tiny")),
                      .choices = {"tiny", "small", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"}},
                     optional_size("layers", "blocks, instead of the size's"),
                     optional_size("heads", "attention heads, instead of the size's"),
                     optional_size("width", "width of the residual stream, instead of the size's"),
                     {.name = "dropout",
                      .kind = AttributeKind::number,
                      .doc = "share of activations dropped after the embedding and before each residual addition",
                      .default_value = Attribute(0.0),
                      .minimum = 0,
                      .maximum = 0.999},
                     {.name = "bias",
                      .kind = AttributeKind::boolean,
                      .doc = "biases in linear layers and norms",
                      .default_value = Attribute(true)},
                     optional_size("vocabulary", "distinct tokens; the data set's by default")},
      .shorthand = "size",
      .build = build_gpt};
}

}  // namespace lockstep::models
