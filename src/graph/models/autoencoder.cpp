// autoencoder: images to a few numbers, the code, and back: convolutions of stride 2, linear layers before and after
// the code, transposed convolutions of stride 2. The job's loss compares with the image itself: `loss.target: image`,
// and `inputs: image` beside the model's name. Source: Masci, Meier, Ciresan and Schmidhuber, "Stacked convolutional
// auto-encoders for hierarchical feature extraction", 2011.
#include <fmt/format.h>

#include <vector>

#include "graph/zoo.hpp"

namespace lockstep::models {

namespace {

Attributes halving(std::int64_t filters, std::int64_t kernel) {
  return Attributes({{"filters", filters}, {"kernel", kernel}, {"stride", std::int64_t{2}}});
}

ValueId build_autoencoder(GraphBuilder& b, const Attributes& attributes, const ModelContext& context) {
  const std::int64_t width = attributes.integer("width"), depth = attributes.integer("depth");
  ValueId x = only_input(context, "autoencoder");
  require_sides("autoencoder", b.spec(x), std::int64_t{1} << depth, depth);
  const std::int64_t channels = b.spec(x).shape.back();
  for (std::int64_t level = 0; level < depth; ++level) {
    const std::string name = fmt::format("encoder{}", level + 1);
    x = b.apply("conv", {x}, halving(width << level, 3), name + ".conv");
    x = b.apply("relu", {x}, {}, name + ".relu");
  }
  const Shape& shape = b.spec(x).shape;
  const std::vector<std::int64_t> grid(shape.begin() + 1, shape.end());
  x = b.apply("flatten", {x}, {}, "flat");
  x = b.apply("linear", {x}, Attributes({{"features", attributes.integer("code")}}), "code");
  x = b.apply("linear", {x}, Attributes({{"features", grid[0] * grid[1] * grid[2]}}), "expand");
  x = b.apply("relu", {x}, {}, "expand.relu");
  x = b.apply("reshape", {x}, Attributes({{"shape", grid}}), "grid");
  for (std::int64_t level = depth - 1; level > 0; --level) {
    const std::string name = fmt::format("decoder{}", level + 1);
    x = b.apply("conv_transpose", {x}, halving(width << (level - 1), 4), name + ".conv");
    x = b.apply("relu", {x}, {}, name + ".relu");
  }
  return b.apply("conv_transpose", {x}, halving(channels, 4), "head");
}

}  // namespace

ModelDef make_autoencoder() {
  AttributeSpec depth{
      .name = "depth", .doc = "number of halvings", .default_value = Attribute(std::int64_t{2}), .minimum = 1};
  depth.maximum = 8;
  return {.name = "autoencoder",
          .doc = "Convolutional autoencoder.",
          .attributes =
              {{.name = "code", .doc = "size of the code", .default_value = Attribute(std::int64_t{32}), .minimum = 1},
               {.name = "width",
                .doc = "channels of the first level; each further level doubles them",
                .default_value = Attribute(std::int64_t{16}),
                .minimum = 1},
               depth},
          .shorthand = "code",
          .build = build_autoencoder};
}

}  // namespace lockstep::models
