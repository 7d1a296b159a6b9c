#include "graph/transformer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace lockstep::models {

TransformerSize with_given(TransformerSize size, const Attributes& attributes) {
  if (attributes.has("layers")) size.layers = attributes.integer("layers");
  if (attributes.has("heads")) size.heads = attributes.integer("heads");
  if (attributes.has("width")) size.width = attributes.integer("width");
  return size;
}

AttributeSpec transformer_dropout() {
  return {.name = "dropout",
          .kind = AttributeKind::number,
          .doc = "dropout rate after the embedding and before each residual addition",
          .default_value = Attribute(0.0),
          .minimum = 0,
          .maximum = 0.999};
}

AttributeSpec transformer_positions() {
  return {.name = "positions",
          .doc = "learned positions, the most tokens of a sample; default: the data set's",
          .optional = true,
          .minimum = 1};
}

Attributes learned_positions(const Attributes& attributes) {
  Attributes of({{"std", 0.02}});
  if (attributes.has("positions")) of.set("length", attributes.integer("positions"));
  return of;
}

AttributeSpec transformer_epsilon(const std::string& usual) {
  return {.name = "epsilon",
          .kind = AttributeKind::number,
          .doc = "added to the variance in norms; default " + usual,
          .optional = true,
          .minimum = 0};
}

double epsilon_of(const Attributes& attributes, double usual) {
  return attributes.has("epsilon") ? attributes.number("epsilon") : usual;
}

AttributeSpec transformer_hidden() {
  return {.name = "hidden",
          .doc = "features between a block's linear layers; default: 4 times the width",
          .optional = true,
          .minimum = 1};
}

std::int64_t hidden_of(const Attributes& attributes, std::int64_t width) {
  return attributes.has("hidden") ? attributes.integer("hidden") : 4 * width;
}

Transformer::Transformer(GraphBuilder& builder, TransformerDesign design)
    : b_(builder), design_(std::move(design)), residual_stddev_(0.02 / std::sqrt(2.0 * design_.size.layers)) {}

ValueId Transformer::blocks(ValueId x) {
  for (std::int64_t i = 1; i <= design_.size.layers; ++i) x = block(x, fmt::format("block{}", i));
  return x;
}

ValueId Transformer::block(ValueId x, const std::string& name) {
  const auto [layers, heads, width] = design_.size;
  b_.begin_block(name);
  ValueId y = linear(norm(x, name + ".norm1"), 3 * width, 0.02, name + ".qkv");
  y = b_.apply("attention", {y}, Attributes({{"heads", heads}, {"causal", design_.causal}}), name + ".attention");
  y = drop(linear(y, width, residual_stddev_, name + ".projection"), name + ".projection");
  x = b_.apply("add", {x, y}, {}, name + ".add1");
  y = linear(norm(x, name + ".norm2"), design_.hidden > 0 ? design_.hidden : 4 * width, 0.02, name + ".expand");
  y = b_.apply("gelu", {y}, Attributes({{"approximate", design_.gelu}}), name + ".gelu");
  y = drop(linear(y, width, residual_stddev_, name + ".contract"), name + ".contract");
  x = b_.apply("add", {x, y}, {}, name + ".add2");
  b_.begin_block("");
  return x;
}

ValueId Transformer::linear(ValueId x, std::int64_t features, double stddev, const std::string& name) {
  return b_.apply("linear", {x}, Attributes({{"features", features}, {"bias", design_.bias}, {"std", stddev}}), name);
}

ValueId Transformer::norm(ValueId x, const std::string& name) {
  return b_.apply("layer_norm", {x}, Attributes({{"bias", design_.bias}, {"epsilon", design_.epsilon}}), name);
}

ValueId Transformer::drop(ValueId x, const std::string& name) {
  if (design_.dropout <= 0) return x;
  return b_.apply("dropout", {x}, Attributes({{"rate", design_.dropout}}), name + ".dropout");
}

}  // namespace lockstep::models
