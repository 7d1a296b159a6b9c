// unet: from images to images of their size: `depth` levels down, by pairs of convolutions and max pooling, and up
// again by transposed convolutions, each beside what the level had on the way down. Convolutions are padded and normed,
// as in common implementations; the paper's are neither. Source: Ronneberger, Fischer and Brox, "U-Net: Convolutional
// networks for biomedical image segmentation", 2015.
#include <fmt/format.h>

#include <vector>

#include "graph/zoo.hpp"

namespace lockstep::models {

namespace {

/// Two convolutions of 3 x 3, each with norm and relu.
ValueId conv_pair(GraphBuilder& b, ValueId x, std::int64_t filters, const std::string& name) {
  for (const char* number : {".1", ".2"}) {
    x = b.apply("conv", {x}, Attributes({{"filters", filters}, {"kernel", std::int64_t{3}}, {"bias", false}}),
                name + number + ".conv");
    x = b.apply("batch_norm", {x}, {}, name + number + ".norm");
    x = b.apply("relu", {x}, {}, name + number + ".relu");
  }
  return x;
}

ValueId build_unet(GraphBuilder& b, const Attributes& attributes, const ModelContext& context) {
  const std::int64_t width = attributes.integer("width"), depth = attributes.integer("depth"), two = 2;
  ValueId x = only_input(context, "unet");
  require_sides("unet", b.spec(x), two << (depth - 1), depth);
  std::vector<ValueId> skips;
  for (std::int64_t level = 0; level < depth; ++level) {
    const std::string name = fmt::format("down{}", level + 1);
    b.begin_block(name);
    x = conv_pair(b, x, width << level, name);
    skips.push_back(x);
    x = b.apply("max_pool", {x}, Attributes({{"kernel", two}}), name + ".pool");
  }
  b.begin_block("bottom");
  x = conv_pair(b, x, width << depth, "bottom");
  for (std::int64_t level = depth - 1; level >= 0; --level) {
    const std::string name = fmt::format("up{}", level + 1);
    b.begin_block(name);
    x = b.apply("conv_transpose", {x}, Attributes({{"filters", width << level}, {"kernel", two}, {"stride", two}}),
                name + ".conv");
    x = b.apply("concat", {skips[level], x}, {}, name + ".concat");
    x = conv_pair(b, x, width << level, name);
  }
  b.begin_block("");
  return b.apply("conv", {x}, Attributes({{"filters", attributes.integer("outputs")}, {"kernel", std::int64_t{1}}}),
                 "head");
}

}  // namespace

ModelDef make_unet() {
  AttributeSpec depth{
      .name = "depth", .doc = "number of halvings", .default_value = Attribute(std::int64_t{4}), .minimum = 1};
  depth.maximum = 8;
  return {.name = "unet",
          .doc = "U-Net, for segmentation and denoising.",
          .attributes = {{.name = "width",
                          .doc = "channels of the first level; each further level doubles them",
                          .default_value = Attribute(std::int64_t{64}),
                          .minimum = 1},
                         depth,
                         {.name = "outputs",
                          .doc = "output channels: 1 for a mask, or the number of classes",
                          .default_value = Attribute(std::int64_t{1}),
                          .minimum = 1}},
          .shorthand = "width",
          .batch_statistics = true,
          .build = build_unet};
}

}  // namespace lockstep::models
