// A custom model: residual_mlp, linear layers with residual connections. A job uses it by name, with its parameters.
#include <lockstep/graph_builder.hpp>

#include "example.hpp"

namespace {

using namespace lockstep;

ValueId build(GraphBuilder& b, const Attributes& parameters, const ModelContext& context) {
  const std::int64_t width = parameters.integer("width");
  const auto linear = [&](ValueId x, std::int64_t features, const std::string& name) {
    return b.apply("linear", {x}, Attributes({{"features", features}}), name);
  };
  ValueId x = linear(b.apply("flatten", {context.inputs.at(0).second}), width, "stem");
  for (std::int64_t block = 1; block <= parameters.integer("blocks"); ++block) {
    const ValueId around = x;
    x = linear(b.apply("relu", {x}), width, "block" + std::to_string(block));
    x = b.apply("add", {around, x});
  }
  return linear(b.apply("relu", {x}), context.classes, "head");
}

ModelDef residual_mlp() {
  return {.name = "residual_mlp",
          .doc = "linear layers with connections around them",
          .attributes = {{.name = "width", .doc = "features of each layer", .default_value = std::int64_t{32}},
                         {.name = "blocks", .doc = "layers with a connection around them", .minimum = 0}},
          .shorthand = "blocks",
          .build = build};
}

}  // namespace

int main() {
  return run_example([] {
    Registries registries = Registries::built_in();
    registries.models.add(residual_mlp());
    const JobFile job = digits(registries, {"model={residual_mlp: {blocks: 2, width: 24}}"});
    return same_bits([&](Communicator& communicator) { return train_job(job, communicator, registries); });
  });
}
