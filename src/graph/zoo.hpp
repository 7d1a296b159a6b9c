// The model zoo: one file per family, which CMake finds and lists.
#pragma once

#include "lockstep/graph_builder.hpp"

namespace lockstep::models {

void add_built_in(ModelRegistry& registry);

/// The data set's classes, unless the model's attribute `classes` sets them; throws if neither is known.
[[nodiscard]] std::int64_t classes_of(const Attributes& attributes, const ModelContext& context);
/// The data set's vocabulary, unless the model's attribute `vocabulary` sets it; throws if neither is known.
[[nodiscard]] std::int64_t vocabulary_of(const Attributes& attributes, const ModelContext& context,
                                         const std::string& model);
/// Throws Error(configuration) unless `image` is one whose sides are multiples of `multiple`, that of `depth` halvings.
void require_sides(const std::string& model, const TensorSpec& image, std::int64_t multiple, std::int64_t depth);
/// An integer, at least 1, that may be left out.
[[nodiscard]] AttributeSpec optional_size(const std::string& name, const std::string& doc);
/// The only input; throws Error(configuration) if the data set has several.
[[nodiscard]] ValueId only_input(const ModelContext& context, const std::string& model);

}  // namespace lockstep::models
