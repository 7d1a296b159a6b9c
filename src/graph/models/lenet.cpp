// lenet: LeNet-5 with relu and max pooling, as it is commonly taught.
// Source: LeCun et al., "Gradient-based learning applied to document recognition", 1998.
#include "graph/zoo.hpp"

namespace lockstep::models {

namespace {

using Int = std::int64_t;

ValueId build_lenet(GraphBuilder& b, const Attributes& attributes, const ModelContext& context) {
  ValueId x = only_input(context, "lenet");
  x = b.apply("conv", {x}, Attributes({{"filters", Int{6}}, {"kernel", Int{5}}, {"padding", std::string("same")}}));
  x = b.apply("max_pool", {b.apply("relu", {x})}, Attributes({{"kernel", Int{2}}}));
  x = b.apply("conv", {x}, Attributes({{"filters", Int{16}}, {"kernel", Int{5}}, {"padding", std::string("valid")}}));
  x = b.apply("max_pool", {b.apply("relu", {x})}, Attributes({{"kernel", Int{2}}}));
  x = b.apply("flatten", {x});
  x = b.apply("relu", {b.apply("linear", {x}, Attributes({{"features", Int{120}}}))});
  x = b.apply("relu", {b.apply("linear", {x}, Attributes({{"features", Int{84}}}))});
  return b.apply("linear", {x}, Attributes({{"features", classes_of(attributes, context)}}), "head");
}

}  // namespace

ModelDef make_lenet() {
  return {
      .name = "lenet",
      .doc = "LeNet-5, for images of about 28 x 28.",
      .attributes = {{.name = "classes", .doc = "outputs; default: the data set's", .optional = true, .minimum = 1}},
      .build = build_lenet};
}

}  // namespace lockstep::models
