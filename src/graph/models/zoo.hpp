// The model zoo: one file per family.
#pragma once

#include "lockstep/graph_builder.hpp"

namespace lockstep::models {

[[nodiscard]] ModelDef mlp();
[[nodiscard]] ModelDef lenet();
[[nodiscard]] ModelDef resnet();
[[nodiscard]] ModelDef gpt();

void add_built_in(ModelRegistry& registry);

/// The data set's classes, unless the model's attribute `classes` sets them; throws if neither is known.
[[nodiscard]] std::int64_t classes_of(const Attributes& attributes, const ModelContext& context);
/// The only input; throws Error(configuration) if the data set has several.
[[nodiscard]] ValueId only_input(const ModelContext& context, const std::string& model);

}  // namespace lockstep::models
