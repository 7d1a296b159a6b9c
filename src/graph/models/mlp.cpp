// mlp: linear layers with relu between them.
#include "graph/zoo.hpp"

namespace lockstep::models {

namespace {

ValueId build_mlp(GraphBuilder& b, const Attributes& attributes, const ModelContext& context) {
  ValueId x = b.apply("flatten", {only_input(context, "mlp")});
  for (const auto width : attributes.integers("hidden")) {
    x = b.apply("linear", {x}, Attributes({{"features", width}}));
    x = b.apply("relu", {x});
    if (attributes.number("dropout") > 0) {
      x = b.apply("dropout", {x}, Attributes({{"rate", attributes.number("dropout")}}));
    }
  }
  return b.apply("linear", {x}, Attributes({{"features", classes_of(attributes, context)}}), "head");
}

}  // namespace

ModelDef make_mlp() {
  return {
      .name = "mlp",
      .doc = "Linear layers with relu between them.",
      .attributes = {{.name = "hidden",
                      .kind = AttributeKind::integers,
                      .doc = "width of each hidden layer",
                      .default_value = Attribute(std::vector<std::int64_t>{128}),
                      .minimum = 1},
                     {.name = "dropout",
                      .kind = AttributeKind::number,
                      .doc = "dropout rate after each hidden layer",
                      .default_value = Attribute(0.0),
                      .minimum = 0,
                      .maximum = 0.999},
                     {.name = "classes", .doc = "outputs; default: the data set's", .optional = true, .minimum = 1}},
      .shorthand = "hidden",
      .build = build_mlp};
}

}  // namespace lockstep::models
