// resnet: residual networks. Depths 20, 32, 44, 56 and 110 are the three-stage nets for 32 x 32 images (basic
// blocks of 16, 32, 64 channels); 18, 34 (basic) and 50 (bottleneck) are the four-stage nets for larger images.
// Shortcuts that change the shape are 1 x 1 convolutions (option B), as in common implementations.
// Source: He et al., "Deep residual learning for image recognition", CVPR 2016.
#include <fmt/format.h>

#include <vector>

#include "graph/zoo.hpp"
#include "lockstep/error.hpp"

namespace lockstep::models {

namespace {

struct Design {
  std::vector<std::int64_t> blocks;  // per stage
  std::vector<std::int64_t> widths;
  bool bottleneck = false;
  bool small = false;  // 32 x 32: 3 x 3 stem, no pooling
};

Design design_of(std::int64_t depth) {
  switch (depth) {
    case 18:
      return {{2, 2, 2, 2}, {64, 128, 256, 512}, false, false};
    case 34:
      return {{3, 4, 6, 3}, {64, 128, 256, 512}, false, false};
    case 50:
      return {{3, 4, 6, 3}, {64, 128, 256, 512}, true, false};
    case 20:
    case 32:
    case 44:
    case 56:
    case 110: {
      const std::int64_t n = (depth - 2) / 6;
      return {{n, n, n}, {16, 32, 64}, false, true};
    }
    default:
      throw Error(ExitCode::configuration,
                  fmt::format("resnet: depth: expected 18, 34, 50 (larger images) or 20, 32, 44, 56, 110 (32 x 32), "
                              "found {}",
                              depth));
  }
}

class ResNet {
 public:
  ResNet(GraphBuilder& builder, bool zero_init) : b_(builder), zero_init_(zero_init) {}

  ValueId stem(ValueId x, const Design& design) {
    if (design.small) return relu(conv_norm(x, design.widths[0], 3, 1, "stem"), "stem");
    x = relu(conv_norm(x, design.widths[0], 7, 2, "stem"), "stem");
    return b_.apply(
        "max_pool", {x},
        Attributes({{"kernel", std::int64_t{3}}, {"stride", std::int64_t{2}}, {"padding", std::int64_t{1}}}),
        "stem.pool");
  }

  ValueId block(ValueId x, std::int64_t width, std::int64_t stride, bool bottleneck, const std::string& name) {
    b_.begin_block(name);
    const std::int64_t out = bottleneck ? 4 * width : width;
    ValueId y = x;
    if (bottleneck) {
      y = relu(conv_norm(y, width, 1, 1, name + ".1"), name + ".1");
      y = relu(conv_norm(y, width, 3, stride, name + ".2"), name + ".2");
      y = conv_norm(y, out, 1, 1, name + ".3", zero_init_);
    } else {
      y = relu(conv_norm(y, width, 3, stride, name + ".1"), name + ".1");
      y = conv_norm(y, out, 3, 1, name + ".2", zero_init_);
    }
    ValueId shortcut = x;
    if (stride != 1 || b_.spec(x).shape.back() != out) shortcut = conv_norm(x, out, 1, stride, name + ".shortcut");
    y = relu(b_.apply("add", {y, shortcut}, {}, name + ".add"), name);
    b_.begin_block("");
    return y;
  }

 private:
  ValueId relu(ValueId x, const std::string& name) { return b_.apply("relu", {x}, {}, name + ".relu"); }

  ValueId conv_norm(ValueId x, std::int64_t filters, std::int64_t kernel, std::int64_t stride, const std::string& name,
                    bool zero_init = false) {
    x = b_.apply("conv", {x},
                 Attributes({{"filters", filters}, {"kernel", kernel}, {"stride", stride}, {"bias", false}}),
                 name + ".conv");
    return b_.apply("batch_norm", {x}, Attributes({{"zero_init", zero_init}}), name + ".norm");
  }

  GraphBuilder& b_;
  bool zero_init_;
};

ValueId build_resnet(GraphBuilder& b, const Attributes& attributes, const ModelContext& context) {
  const Design design = design_of(attributes.integer("depth"));
  ResNet net(b, attributes.boolean("zero_init"));
  ValueId x = net.stem(only_input(context, "resnet"), design);
  for (std::size_t stage = 0; stage < design.blocks.size(); ++stage) {
    for (std::int64_t i = 0; i < design.blocks[stage]; ++i) {
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = net.block(x, design.widths[stage], stride, design.bottleneck,
                    fmt::format("stage{}.block{}", stage + 1, i + 1));
    }
  }
  x = b.apply("global_pool", {x}, {}, "pool");
  return b.apply("linear", {x}, Attributes({{"features", classes_of(attributes, context)}}), "head");
}

}  // namespace

ModelDef make_resnet() {
  return {.name = "resnet",
          .doc = "Residual network: depth 20, 32, 44, 56 or 110 for images of 32 x 32; else 18, 34 or 50.",
          .attributes = {{.name = "depth",
                          .doc = "layers with weights",
                          .default_value = Attribute(std::int64_t{20}),
                          .minimum = 18,
                          .maximum = 110},
                         {.name = "classes", .doc = "outputs; default: the data set's", .optional = true, .minimum = 1},
                         {.name = "zero_init",
                          .kind = AttributeKind::boolean,
                          .doc = "last norms of blocks start at 0, so blocks start as identities",
                          .default_value = Attribute(false)}},
          .shorthand = "depth",
          .batch_statistics = true,
          .build = build_resnet};
}

}  // namespace lockstep::models
