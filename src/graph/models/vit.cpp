// vit: the vision transformer: patches of the image become tokens (a convolution), with learned positions, blocks that
// see all tokens, and a linear layer over the mean of the tokens, which needs no class token, or over a class token.
// Sources: Dosovitskiy et al., "An image is worth 16x16 words", 2021; the mean: Beyer, Zhai and Kolesnikov, "Better
// plain ViT baselines for ImageNet-1k", 2022.
#include <fmt/format.h>

#include <cmath>

#include "graph/transformer.hpp"
#include "graph/zoo.hpp"
#include "lockstep/error.hpp"

namespace lockstep::models {

namespace {

using Int = std::int64_t;

TransformerSize vit_size(const Attributes& attributes) {
  const std::string& name = attributes.text("size");
  TransformerSize size{6, 4, 64};  // "tiny": small images, on a CPU
  if (name == "small") size = {12, 6, 384};
  if (name == "base") size = {12, 12, 768};
  if (name == "large") size = {24, 16, 1024};
  return with_given(size, attributes);
}

/// [batch, rows, columns, width]
ValueId patches(GraphBuilder& b, ValueId image, Int width, Int patch) {
  const Shape& shape = b.spec(image).shape;
  if (shape.size() != 4 || shape[1] % patch != 0 || shape[2] % patch != 0 || shape[1] == 0 || shape[2] == 0) {
    throw Error(ExitCode::configuration,
                fmt::format("vit: expected images [batch, height, width, channels] whose sides are multiples of {}, "
                            "found {}; set `patch`",
                            patch, to_string(shape)));
  }
  const double stddev = 1 / std::sqrt(static_cast<double>(patch * patch * shape[3]));
  return b.apply("conv", {image},
                 Attributes({{"filters", width},
                             {"kernel", patch},
                             {"stride", patch},
                             {"padding", std::string("valid")},
                             {"std", stddev}}),
                 "patches");
}

ValueId build_vit(GraphBuilder& b, const Attributes& attributes, const ModelContext& context) {
  const TransformerSize size = vit_size(attributes);
  const Int patch = attributes.has("patch") ? attributes.integer("patch") : attributes.text("size") == "tiny" ? 4 : 16;
  ValueId x = patches(b, only_input(context, "vit"), size.width, patch);
  const Int rows = b.spec(x).shape[1], columns = b.spec(x).shape[2];
  x = b.apply("reshape", {x}, Attributes({{"shape", std::vector<Int>{rows * columns, size.width}}}), "tokens");
  const bool by_token = attributes.has("pool") && attributes.text("pool") == "token";
  if (by_token) x = b.apply("class_token", {x}, {}, "class_token");
  Transformer transformer(b, {.size = size,
                              .causal = false,
                              .dropout = attributes.number("dropout"),
                              .gelu = "none",
                              .epsilon = epsilon_of(attributes, 1e-5),
                              .hidden = hidden_of(attributes, size.width)});
  x = transformer.drop(b.apply("position_embedding", {x}, Attributes({{"std", 0.02}}), "positions"), "embedding");
  x = transformer.norm(transformer.blocks(x), "norm");
  if (by_token) {
    x = b.apply("slice", {x}, Attributes({{"axis", Int{1}}, {"end", Int{1}}}), "class");
    x = b.apply("flatten", {x}, {}, "pool");
  } else {
    x = b.apply("reshape", {x}, Attributes({{"shape", std::vector<Int>{rows, columns, size.width}}}), "grid");
    x = b.apply("global_pool", {x}, {}, "pool");
  }
  return b.apply("linear", {x}, Attributes({{"features", classes_of(attributes, context)}}), "head");
}

}  // namespace

ModelDef make_vit() {
  return {.name = "vit",
          .doc = "Vision transformer.",
          .attributes = {{.name = "size",
                          .kind = AttributeKind::text,
                          .doc = "layers, heads, width, patch: tiny 6, 4, 64, 4; small 12, 6, 384, 16; base 12, 12, "
                                 "768, 16; large 24, 16, 1024, 16",
                          .default_value = Attribute(std::string("tiny")),
                          .choices = {"tiny", "small", "base", "large"}},
                         optional_size("patch", "height and width of a patch in pixels; default: by size"),
                         optional_size("layers", "blocks; default: by size"),
                         optional_size("heads", "attention heads; default: by size"),
                         optional_size("width", "features of a token; default: by size"),
                         transformer_dropout(),
                         {.name = "pool",
                          .kind = AttributeKind::text,
                          .doc = "classify the mean of the tokens or a class token before them; default: mean",
                          .optional = true,
                          .choices = {"mean", "token"}},
                         transformer_hidden(),
                         transformer_epsilon("1e-5"),
                         optional_size("classes", "outputs; default: the data set's")},
          .shorthand = "size",
          .build = build_vit};
}

}  // namespace lockstep::models
