// gpt: the decoder-only transformer of GPT-2, with pre-norm blocks, learned positions and a tied head.
// Source: Radford et al., "Language models are unsupervised multitask learners", 2019.
#include "graph/transformer.hpp"
#include "graph/zoo.hpp"

namespace lockstep::models {

namespace {

TransformerSize gpt_size(const Attributes& attributes) {
  const std::string& name = attributes.text("size");
  TransformerSize size{4, 4, 128};  // "tiny": a character model for a CPU
  if (name == "gpt2") size = {12, 12, 768};
  if (name == "gpt2-medium") size = {24, 16, 1024};
  if (name == "gpt2-large") size = {36, 20, 1280};
  if (name == "gpt2-xl") size = {48, 25, 1600};
  if (name == "small") size = {6, 6, 384};
  return with_given(size, attributes);
}

ValueId build_gpt(GraphBuilder& b, const Attributes& attributes, const ModelContext& context) {
  const std::int64_t vocabulary = vocabulary_of(attributes, context, "gpt");
  const TransformerSize size = gpt_size(attributes);
  Transformer transformer(b, {.size = size,
                              .bias = attributes.boolean("bias"),
                              .dropout = attributes.number("dropout"),
                              .gelu = attributes.has("gelu") ? attributes.text("gelu") : "tanh",
                              .epsilon = epsilon_of(attributes, 1e-5),
                              .hidden = hidden_of(attributes, size.width)});
  ValueId x = b.apply("embedding", {only_input(context, "gpt")},
                      Attributes({{"vocabulary", vocabulary}, {"width", size.width}, {"std", 0.02}}), "tokens");
  x = transformer.drop(b.apply("position_embedding", {x}, learned_positions(attributes), "positions"), "embedding");
  x = transformer.norm(transformer.blocks(x), "norm");
  return b.apply("linear", {x},
                 Attributes({{"features", vocabulary}, {"bias", false}, {"tied", std::string("tokens")}}), "head");
}

}  // namespace

ModelDef make_gpt() {
  return {.name = "gpt",
          .doc = "GPT-2's decoder-only transformer.",
          .attributes = {{.name = "size",
                          .kind = AttributeKind::text,
                          .doc = "layers, heads, width: tiny 4, 4, 128; small 6, 6, 384; gpt2 12, 12, 768; gpt2-medium "
                                 "24, 16, 1024; gpt2-large 36, 20, 1280; gpt2-xl 48, 25, 1600",
                          .default_value = Attribute(std::string("tiny")),
                          .choices = {"tiny", "small", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"}},
                         optional_size("layers", "blocks; default: by size"),
                         optional_size("heads", "attention heads; default: by size"),
                         optional_size("width", "width of the residual stream; default: by size"),
                         transformer_dropout(),
                         {.name = "bias",
                          .kind = AttributeKind::boolean,
                          .doc = "biases in linear layers and norms",
                          .default_value = Attribute(true)},
                         transformer_positions(),
                         transformer_hidden(),
                         transformer_epsilon("1e-5"),
                         {.name = "gelu",
                          .kind = AttributeKind::text,
                          .doc = "tanh, as in GPT-2; none: exact; default: tanh",
                          .optional = true,
                          .choices = {"tanh", "none"}},
                         optional_size("vocabulary", "distinct tokens; default: the data set's")},
          .shorthand = "size",
          .build = build_gpt};
}

}  // namespace lockstep::models
