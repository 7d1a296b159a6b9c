// bert: BERT's encoder: learned positions, blocks that see all tokens, with norms after the residual additions. Of
// texts with a length no token sees the padding. The head is the one for masked tokens, which shares its weight with
// the embedding, or the one for classes, which sees the first token. Token types, of which a text of one segment has
// only one, are part of the positions, unless `types` asks for them. Source: Devlin et al., "BERT: pre-training of deep
// bidirectional transformers for language understanding", 2019.
#include <fmt/format.h>

#include "graph/transformer.hpp"
#include "graph/zoo.hpp"
#include "lockstep/data_set.hpp"

namespace lockstep::models {

namespace {

TransformerSize bert_size(const Attributes& attributes) {
  const std::string& name = attributes.text("size");
  TransformerSize size{4, 4, 128};  // "tiny": a character model for a CPU
  if (name == "base") size = {12, 12, 768};
  if (name == "large") size = {24, 16, 1024};
  return with_given(size, attributes);
}

struct Bert {
  GraphBuilder& b;
  TransformerSize size;
  double dropout, epsilon;
  std::int64_t hidden;
  std::vector<ValueId> inputs;  ///< tokens, and lengths if there are any

  ValueId linear(ValueId x, std::int64_t features, const std::string& name) const {
    return b.apply("linear", {x}, Attributes({{"features", features}, {"std", 0.02}}), name);
  }
  ValueId drop(ValueId x, const std::string& name) const {
    return dropout > 0 ? b.apply("dropout", {x}, Attributes({{"rate", dropout}}), name + ".dropout") : x;
  }
  ValueId norm(ValueId x, const std::string& name) const {
    return b.apply("layer_norm", {x}, Attributes({{"epsilon", epsilon}}), name);
  }
  ValueId gelu(ValueId x, const std::string& name) const {
    return b.apply("gelu", {x}, Attributes({{"approximate", std::string("none")}}), name);
  }

  ValueId block(ValueId x, const std::string& name) const {
    b.begin_block(name);
    ValueId y = linear(x, 3 * size.width, name + ".qkv");
    std::vector<ValueId> seen = inputs;
    seen[0] = y;
    y = b.apply("attention", seen, Attributes({{"heads", size.heads}, {"causal", false}}), name + ".attention");
    y = drop(linear(y, size.width, name + ".projection"), name + ".projection");
    x = norm(b.apply("add", {x, y}, {}, name + ".add1"), name + ".norm1");
    y = gelu(linear(x, hidden, name + ".expand"), name + ".gelu");
    y = drop(linear(y, size.width, name + ".contract"), name + ".contract");
    x = norm(b.apply("add", {x, y}, {}, name + ".add2"), name + ".norm2");
    b.begin_block("");
    return x;
  }
};

std::vector<ValueId> bert_inputs(const ModelContext& context) {
  const auto& inputs = context.inputs;
  if (inputs.size() == 2 && inputs[1].first == kLength) return {inputs[0].second, inputs[1].second};
  return {only_input(context, "bert")};
}

bool predicts_classes(const Attributes& attributes, const ModelContext& context) {
  return attributes.has("head") ? attributes.text("head") == "classes" : context.classes > 0;
}

ValueId class_head(const Bert& bert, ValueId x, std::int64_t classes) {
  x = bert.b.apply("slice", {x}, Attributes({{"axis", std::int64_t{1}}, {"end", std::int64_t{1}}}), "first");
  x = bert.linear(bert.b.apply("flatten", {x}, {}, "pool"), bert.size.width, "pooler");
  return bert.linear(bert.drop(bert.b.apply("tanh", {x}, {}, "pooler.tanh"), "pooler"), classes, "classifier");
}

ValueId build_bert(GraphBuilder& b, const Attributes& attributes, const ModelContext& context) {
  const std::int64_t vocabulary = vocabulary_of(attributes, context, "bert");
  const TransformerSize size = bert_size(attributes);
  const std::int64_t width = size.width;
  const Bert bert{b,
                  size,
                  attributes.number("dropout"),
                  epsilon_of(attributes, 1e-12),
                  hidden_of(attributes, width),
                  bert_inputs(context)};
  ValueId x = b.apply("embedding", {bert.inputs[0]},
                      Attributes({{"vocabulary", vocabulary}, {"width", width}, {"std", 0.02}}), "tokens");
  x = b.apply("position_embedding", {x}, learned_positions(attributes), "positions");
  if (attributes.has("types")) {
    x = b.apply("position_embedding", {x},
                Attributes({{"length", attributes.integer("types")}, {"same", true}, {"std", 0.02}}), "types");
  }
  x = bert.drop(bert.norm(x, "embedding.norm"), "embedding");
  for (std::int64_t i = 1; i <= bert.size.layers; ++i) x = bert.block(x, fmt::format("block{}", i));
  if (predicts_classes(attributes, context)) return class_head(bert, x, classes_of(attributes, context));
  x = bert.norm(bert.gelu(bert.linear(x, width, "transform"), "transform.gelu"), "transform.norm");
  return b.apply("linear", {x}, Attributes({{"features", vocabulary}, {"bias", true}, {"tied", std::string("tokens")}}),
                 "head");
}

}  // namespace

ModelDef make_bert() {
  return {.name = "bert",
          .doc = "BERT's encoder, with a head for masked tokens or classes.",
          .attributes = {{.name = "size",
                          .kind = AttributeKind::text,
                          .doc = "layers, heads, width: tiny 4, 4, 128; base 12, 12, 768; large 24, 16, 1024",
                          .default_value = Attribute(std::string("tiny")),
                          .choices = {"tiny", "base", "large"}},
                         optional_size("layers", "blocks; default: by size"),
                         optional_size("heads", "attention heads; default: by size"),
                         optional_size("width", "features of a token; default: by size"),
                         transformer_dropout(),
                         transformer_positions(),
                         optional_size(
                             "types", "rows of an embedding of token types (all tokens have the first); default: none"),
                         transformer_hidden(),
                         transformer_epsilon("1e-12"),
                         {.name = "head",
                          .kind = AttributeKind::text,
                          .doc = "predicts tokens or the sample's class; default: classes where the data set has them",
                          .optional = true,
                          .choices = {"tokens", "classes"}},
                         optional_size("classes", "outputs of the head for classes; default: the data set's"),
                         optional_size("vocabulary", "distinct tokens and the mask; default: the data set's")},
          .shorthand = "size",
          .build = build_bert};
}

}  // namespace lockstep::models
