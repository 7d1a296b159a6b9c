// The blocks of a transformer with norms before them, as gpt and vit have them: norm, attention, residual addition,
// norm, two linear layers with gelu between them, residual addition. Weights begin normal with a standard deviation of
// 0.02; those before a residual addition with 0.02 / sqrt(2 * layers), as in GPT-2.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/graph_builder.hpp"

namespace lockstep::models {

struct TransformerSize {
  std::int64_t layers, heads, width;
};
/// Replaces what the attributes `layers`, `heads` and `width` set.
[[nodiscard]] TransformerSize with_given(TransformerSize size, const Attributes& attributes);

struct TransformerDesign {
  TransformerSize size;
  bool causal = true;
  bool bias = true;
  double dropout = 0;
  std::string gelu = "tanh";  ///< its form
  double epsilon = 1e-5;      ///< of norms
  std::int64_t hidden = 0;    ///< features between the linear layers of a block; 0: 4 times the width
};

/// The share of activations dropped; an attribute of models with such blocks.
[[nodiscard]] AttributeSpec transformer_dropout();

/// The attribute `positions`, and the attributes of the embedding with as many, or with those of a sample.
[[nodiscard]] AttributeSpec transformer_positions();
[[nodiscard]] Attributes learned_positions(const Attributes& attributes);
/// Of norms, which may be left out; `usual`: what it is then.
[[nodiscard]] AttributeSpec transformer_epsilon(const std::string& usual);
[[nodiscard]] double epsilon_of(const Attributes& attributes, double usual);
/// The attribute `hidden`, or 4 times the width.
[[nodiscard]] AttributeSpec transformer_hidden();
[[nodiscard]] std::int64_t hidden_of(const Attributes& attributes, std::int64_t width);

class Transformer {
 public:
  Transformer(GraphBuilder& builder, TransformerDesign design);

  /// All blocks, called block1, block2, ...
  [[nodiscard]] ValueId blocks(ValueId x);
  [[nodiscard]] ValueId norm(ValueId x, const std::string& name);
  /// x, or `<name>.dropout` of it.
  [[nodiscard]] ValueId drop(ValueId x, const std::string& name);

 private:
  ValueId block(ValueId x, const std::string& name);
  ValueId linear(ValueId x, std::int64_t features, double stddev, const std::string& name);

  GraphBuilder& b_;
  TransformerDesign design_;
  double residual_stddev_;
};

}  // namespace lockstep::models
