// mobilenet: MobileNetV2, of inverted residual blocks: a 1 x 1 convolution to more channels, a depthwise 3 x 3 one, and
// a 1 x 1 one back to few channels without an activation, between which the residual addition is. Channels are rounded
// to multiples of 8, as in common implementations. Source: Sandler, Howard, Zhu, Zhmoginov and Chen, "MobileNetV2:
// Inverted residuals and linear bottlenecks", CVPR 2018.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "graph/zoo.hpp"

namespace lockstep::models {

namespace {

struct MobileStage {
  std::int64_t expansion, channels, blocks, stride;
};

constexpr std::array<MobileStage, 7> kMobileStages{
    {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}};

/// `channels * factor` as a multiple of 8, at least 8, and never less than nine tenths of it.
std::int64_t by_eights(std::int64_t channels, double factor) {
  const double wanted = channels * factor;
  const std::int64_t rounded = std::max<std::int64_t>(8, static_cast<std::int64_t>(wanted + 4) / 8 * 8);
  return rounded < 0.9 * wanted ? rounded + 8 : rounded;
}

class MobileNet {
 public:
  explicit MobileNet(GraphBuilder& builder) : b_(builder) {}

  ValueId conv_norm(ValueId x, Attributes settings, const std::string& name, bool activated = true) {
    settings.set("bias", false);
    x = b_.apply("conv", {x}, settings, name + ".conv");
    x = b_.apply("batch_norm", {x}, {}, name + ".norm");
    return activated ? b_.apply("relu6", {x}, {}, name + ".relu6") : x;
  }

  ValueId block(ValueId x, std::int64_t expansion, std::int64_t out, std::int64_t stride, const std::string& name) {
    b_.begin_block(name);
    const std::int64_t in = b_.spec(x).shape.back(), wide = in * expansion, one = 1, three = 3;
    ValueId y = x;
    if (expansion > 1) y = conv_norm(y, Attributes({{"filters", wide}, {"kernel", one}}), name + ".expand");
    y = conv_norm(y, Attributes({{"filters", wide}, {"kernel", three}, {"stride", stride}, {"groups", wide}}),
                  name + ".depthwise");
    y = conv_norm(y, Attributes({{"filters", out}, {"kernel", one}}), name + ".project", false);
    if (stride == 1 && in == out) y = b_.apply("add", {x, y}, {}, name + ".add");
    b_.begin_block("");
    return y;
  }

 private:
  GraphBuilder& b_;
};

ValueId build_mobilenet(GraphBuilder& b, const Attributes& attributes, const ModelContext& context) {
  const double width = attributes.number("width");
  const bool small = attributes.boolean("small");
  const std::int64_t one = 1, two = 2, three = 3;
  MobileNet net(b);
  ValueId x = net.conv_norm(
      only_input(context, "mobilenet"),
      Attributes({{"filters", by_eights(32, width)}, {"kernel", three}, {"stride", small ? one : two}}), "stem");
  for (std::size_t stage = 0; stage < kMobileStages.size(); ++stage) {
    const auto& [expansion, channels, blocks, stride] = kMobileStages[stage];
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::int64_t step = i == 0 && !(small && stage == 1) ? stride : 1;
      x = net.block(x, expansion, by_eights(channels, width), step, fmt::format("stage{}.block{}", stage + 1, i + 1));
    }
  }
  const std::int64_t last = std::max<std::int64_t>(1280, by_eights(1280, width));
  x = net.conv_norm(x, Attributes({{"filters", last}, {"kernel", one}}), "last");
  x = b.apply("global_pool", {x}, {}, "pool");
  if (attributes.number("dropout") > 0) {
    x = b.apply("dropout", {x}, Attributes({{"rate", attributes.number("dropout")}}), "dropout");
  }
  return b.apply("linear", {x}, Attributes({{"features", classes_of(attributes, context)}}), "head");
}

}  // namespace

ModelDef make_mobilenet() {
  return {.name = "mobilenet",
          .doc = "MobileNetV2.",
          .attributes = {{.name = "width",
                          .kind = AttributeKind::number,
                          .doc = "factor of all channels; the paper: 0.35 to 1.4",
                          .default_value = Attribute(1.0),
                          .minimum = 0.1,
                          .maximum = 4},
                         {.name = "small",
                          .kind = AttributeKind::boolean,
                          .doc = "for images of about 32 x 32: without the first two strides of 2",
                          .default_value = Attribute(false)},
                         {.name = "dropout",
                          .kind = AttributeKind::number,
                          .doc = "dropout rate before the last layer; torchvision has 0.2",
                          .default_value = Attribute(0.0),
                          .minimum = 0,
                          .maximum = 0.999},
                         optional_size("classes", "outputs; default: the data set's")},
          .shorthand = "width",
          .batch_statistics = true,
          .build = build_mobilenet};
}

}  // namespace lockstep::models
